#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Install the Debian packages that config/packages.txt names and that are
# missing: says what first, does nothing where nothing is.
#   setup.sh [FILE..]    other lists
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- "$here/packages.txt"
wanted=$(sed 's/#.*//; s/!.*//' "$@" | awk 'NF { print $1 }')

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "setup: not Debian or its kin. What is needed, by Debian's names:"
	echo "$wanted" | tr '\n' ' ' | fold -s -w 76
	echo
	exit 0
fi

missing=
for name in $wanted; do
	state=$(dpkg-query -W -f='${Status}' "$name" 2>/dev/null || true)
	[ "$state" = "install ok installed" ] || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

echo "setup: will install:$missing" >&2
as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "setup: as root, run: apt-get install$missing" >&2
		exit 3
	fi
	as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words, both of them
{
	$as_root apt-get update -q &&
		$as_root apt-get install -q -y --no-install-recommends $missing
} >&2 || {
	echo "setup: apt-get failed; by hand: apt-get install$missing" >&2
	exit 3
}
