#!/bin/bash
# Everything that can be told without a microVM: check.sh BUILD. Trees of their own below BUILD. The last
# line is `N passed, N failed, N skipped`: N checks, unit tests under sanitizers counted by their cases.
set -uo pipefail
cd -- "$(dirname -- "$0")/.."
build=$1/check
mkdir -p -- "$build"
passed=0 failed=0 skipped=0

# check NAME COMMAND...: its output is shown when it fails.
check() {
	local name=$1 start=$SECONDS
	shift
	if "$@" >"$build/$name.log" 2>&1; then
		passed=$((passed + 1))
		echo "ok      $name ($((SECONDS - start)) s)"
	else
		failed=$((failed + 1))
		echo "FAILED  $name ($((SECONDS - start)) s)"
		tail -n 60 "$build/$name.log"
	fi
}

skip() {
	skipped=$((skipped + 1))
	echo "skipped $1: $2"
}

# tree NAME CC MESON-OPTION...: all programs and tests, no warning allowed.
tree() {
	local folder=$build/$1 cc=$2
	shift 2
	if [ ! -f "$folder/build.ninja" ]; then
		CC=$cc meson setup "$@" "$folder" || return
	fi
	ninja -C "$folder"
}

# The unit tests of a tree; their cases are counted instead of one check.
cases() {
	local name=$1 counts p f s
	meson test -C "$build/$name" --no-rebuild --print-errorlogs --suite unit >"$build/$name-test.log" 2>&1
	counts=$(tools/sum-tests.py "$build/$name")
	read -r p f s <<<"$(sed -nE '$s/([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped/\1 \2 \3/p' <<<"$counts")"
	if [ "${f:-1}" != 0 ]; then
		tail -n 100 "$build/$name-test.log"
	fi
	sed '$d' <<<"$counts"
	echo "cases   $name: ${counts##*$'\n'}"
	passed=$((passed + ${p:-0}))
	failed=$((failed + ${f:-1}))
	skipped=$((skipped + ${s:-0}))
}

check format tools/check-format.sh
check includes tools/check-includes.sh
check lengths tools/check-lengths.py
check words tools/check-words.sh
check shell tools/check-shell.sh
check headers tools/check-headers.sh "$build"
check gcc tree gcc gcc --buildtype=release
if command -v clang >/dev/null; then
	check clang tree clang clang --buildtype=release
	# LeakSanitizer included; the guest's static program is built without, its parts are not.
	check sanitizers tree sanitizers clang -Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args=-fno-sanitize-recover=all --buildtype=debugoptimized
	cases sanitizers
else
	skip clang "clang is not installed: make deps"
	skip sanitizers "clang is not installed: make deps"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
