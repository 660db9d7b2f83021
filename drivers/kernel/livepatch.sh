#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# livepatch.sh load FILE.ko | unload
# Puts the switch into the running kernel and takes it out again, and waits for
# the transition, which needs every task to be seen outside the functions that
# are replaced.  Where loading fails nothing stays.  Runs with busybox.  Exit
# status 0, or 3 with one line of why.
set -u

STATE=/sys/kernel/livepatch/fdscale
SECONDS_TO_WAIT=60

could_not() {
	echo "livepatch: $1" >&2
	exit 3
}

# Wait until the command given succeeds.
wait_for() {
	tries=$((SECONDS_TO_WAIT * 10))
	until "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.1
	done
}

settled() {
	[ "$(cat "$STATE/transition" 2>/dev/null)" = 0 ]
}

gone() {
	[ ! -e "$STATE" ]
}

take_out() {
	echo 0 >"$STATE/enabled" || could_not "$STATE/enabled cannot be written"
	wait_for gone || could_not \
		"not every task has left it in $SECONDS_TO_WAIT s; try again"
	error=$(rmmod fdscale 2>&1) || could_not "rmmod: $error"
}

case "${1-}" in
load)
	[ ! -e "$STATE" ] || could_not "loaded already: unload it first"
	error=$(insmod "$2" 2>&1) || could_not "insmod: $error"
	wait_for settled || {
		take_out
		could_not "not every task has passed over to it in \
$SECONDS_TO_WAIT s: taken out again"
	}
	;;
unload)
	[ -e "$STATE" ] || could_not "not loaded"
	take_out
	;;
*)
	echo "usage: livepatch.sh load FILE.ko | unload" >&2
	exit 2
	;;
esac
