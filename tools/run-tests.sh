#!/bin/bash
# All tests: run-tests.sh BUILD SPACE DATA TEST_DATA. SPACE_TESTS narrows it to suites: unit, redteam,
# system. Test nodes have their own data folders below TEST_DATA and share one template.
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
build=$1 data=$3 test_data=$4
export SPACE_BIN=$2 SPACE_TEST_DATA=$test_data

mkdir -p -- "$test_data"
exec 9>"$test_data/.lock"
flock -n 9 || echo "waiting for another run of the tests to end"
flock 9

suites=${SPACE_TESTS-unit redteam system}
case " $suites " in
*" system "*)
	if ! [ tests/node_modules/.package-lock.json -nt tests/package-lock.json ]; then
		echo "installing the E2B SDK below tests"
		(cd tests && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) || {
			echo "the E2B SDK cannot be installed: whole-system tests will be skipped"
			[ "${CI-}" != true ] || exit 1
			rm -rf -- tests/node_modules
		}
	fi
	tools/share-template.sh "$data" "$test_data/seed"
	mkdir -p -- "$test_data/seed"
	"$SPACE_BIN" template build --data "$test_data/seed" base
	;;
esac

arguments=()
for suite in $suites; do
	arguments+=(--suite "$suite")
done
meson test -C "$build" --no-rebuild --print-errorlogs --num-processes 2 "${arguments[@]}" 9>&- || :
exec tools/sum-tests.py "$build"
