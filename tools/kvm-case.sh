#!/bin/bash
# Runs where /dev/kvm works: a sandbox from nothing, then two more from the same saved state.
#   kvm-case.sh SPACE DATA
set -uo pipefail
space=$1
export SPACE_DATA=$PWD/$2
passed=0 failed=0

expect() {
	local says=$1 want=$2 got
	shift 2
	got=$("$@" 2>>errors) || got="exit $?: $got"
	if [[ $got =~ $want ]]; then
		passed=$((passed + 1))
		echo "ok      $says"
	else
		failed=$((failed + 1))
		echo "FAILED  $says: got '$got'"
		tail -n 5 errors
	fi
}

expect 'the node starts, with KVM' 'isolation +kvm' "$space" up --listen 127.0.0.1:0
expect 'a sandbox answers' '^42$' "$space" run --timing python3 -c 'print(6*7)'
expect 'the same state, a second time' '^42$' "$space" run --timing python3 -c 'print(6*7)'
expect 'and a third time' '^42$' "$space" run --timing python3 -c 'print(6*7)'
expect 'the guest sees KVM' 'kvm' "$space" run sh -c 'cat /sys/hypervisor/type /sys/devices/system/clocksource/clocksource0/available_clocksource 2>/dev/null'
expect 'the node ends' '' "$space" down
grep -h 'created in' errors
if [ "$failed" != 0 ]; then
	tail -n 20 "$SPACE_DATA/node.log" "$SPACE_DATA"/state/*.log
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
