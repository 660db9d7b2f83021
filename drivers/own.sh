# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-only
#
# own-driver workload-file|testcase FILE: print the path of a driver for FILE.
#
# build/own-driver sources this, with how the rest was built: CC FLAGS CASE_FLAGS
# LDFLAGS LDLIBS OBJS ROOT BUILD.  A driver is kept by the content of FILE and of
# what it includes, and made anew when the objects that it shares are newer; it
# appears whole or not at all.  Where it cannot be: one line on stdout,
# status 2 (it is FILE's fault) or 3.
#
# shellcheck disable=SC2086,SC2154 # flags are words; they come from own-driver
set -eu
kind=$1 file=$2
name=$(basename "$file" .c)
keep=$BUILD/own
cd "$ROOT"
export LC_ALL=C

end() {
	echo "$2"
	exit "$1"
}

case $file in
*.c) ;;
*) end 2 "not a C file: its name does not end in .c" ;;
esac
case $name in
*[!A-Za-z0-9._+-]* | -*)
	end 2 "the workload is named as the file: letters, digits and . _ + - only" ;;
esac
for tool in "${CC%% *}" objcopy sha256sum; do
	command -v "$tool" >/dev/null || end 3 "$tool is missing: make setup"
done
newer=$(find drivers -name '*.h' -newer "$BUILD/fdscale" | head -n1)
[ -z "$newer" ] || end 3 "$newer has changed since the build: run make"
mkdir -p "$keep" 2>/dev/null || end 3 "$keep cannot be written"
work=$(mktemp -d "$keep/.new-XXXXXX" 2>/dev/null) ||
	end 3 "$keep cannot be written"
trap 'rm -rf "$work"' EXIT

# What the compiler says, whole, in a file; its first error in the one line.
failed() {
	cp "$work/log" "$keep/$name.log"
	first=$(grep -m1 -E 'error: |undefined reference|multiple definition' \
		"$work/log" || head -n1 "$work/log")
	end 2 "does not compile: $first (all of it: $keep/$name.log)"
}

compile() { # SOURCE FLAGS..
	$CC "$@" 2>"$work/log" || failed
}

# FILE as a built-in workload is compiled, or as it comes.
users() { # FLAGS..
	if [ "$kind" = testcase ]; then
		compile "$file" $CASE_FLAGS -w "$@"
	else
		compile "$file" $FLAGS -w -I"$ROOT/drivers/workloads" \
			-I"$ROOT/drivers" "$@"
	fi
}

# The file, then what it includes of its own: neither the system's nor ours.
users -DFD_BACKEND_KERNEL -MM -MT - -MF "$work/deps"
sum=$({
	cat "$file"
	sed -e '1s/^-: *//' -e 's/\\$//' "$work/deps" | xargs -n1 printf '%s\n' |
		tail -n +2 | { grep -v "^$ROOT/drivers/" || :; } |
		tr '\n' '\0' | xargs -0r cat
} | sha256sum | cut -d' ' -f1)
home=$keep/$kind-$name-$(echo "$sum" | cut -c1-12)
driver=$home/fdscale
if [ -x "$driver" ] && [ -z "$(find $OBJS -newer "$driver")" ]; then
	end 0 "$driver"
fi

named="-DFDSCALE_OWN_NAME=\"$name\""
public=--keep-global-symbol=none # no name of FILE's stands for one of ours
if [ "$kind" = testcase ]; then
	users -c -o "$work/1.o"
	compile drivers/testcase.c $FLAGS -DFD_BACKEND_KERNEL "$named" \
		-c -o "$work/2.o"
	for word in testcase testcase_description testcase_prepare \
		testcase_cleanup; do
		public="$public --keep-global-symbol=$word"
	done
	objcopy $public "$work/1.o"
else
	users -DFD_BACKEND_KERNEL "$named" -c -o "$work/1.o"
	users -DFD_BACKEND_MODEL "$named" -c -o "$work/2.o"
	for object in 1.o 2.o; do
		objcopy $public "$work/$object"
		objdump -h "$work/$object"
	done | grep -q ' workloads ' ||
		end 2 "no WORKLOAD() in it; see README, Adding a workload"
fi
cat >"$work/own.c" <<EOF
#include "harness/own.h"
const struct own own = {"$kind", "$name", "$sum"};
EOF
compile "$work/own.c" $FLAGS -Idrivers -c -o "$work/own.o"
compile $OBJS "$work/1.o" "$work/2.o" "$work/own.o" $FLAGS $LDFLAGS \
	-o "$work/fdscale" $LDLIBS
mkdir -p "$home"
mv -f "$work/fdscale" "$driver"
end 0 "$driver"
