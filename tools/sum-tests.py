#!/usr/bin/env python3
"""Counts what a Meson test run has run: sum-tests.py BUILD

What has a name counts as one: a unit-test program, whatever number of comparisons it makes, and each
case of a whole-system file, which ends with a line `N passed, N failed, N skipped`. A program that
failed without counting a failure (a crash, a time-out) is one failed. The last line is the sum; exit
status 1 when something failed or nothing ran.
"""
import json
import re
import sys

COUNT = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)


def counts(test):
    """passed, failed, skipped of one program."""
    found = COUNT.findall(test.get("stdout") or "")
    passed, failed, skipped = (int(n) for n in found[-1]) if found else (0, 0, 0)
    result = test["result"]
    if result == "SKIP":
        return passed, failed, max(skipped, 1)
    if result != "OK" and not failed:
        failed = 1
    if result == "OK" and not found:
        passed = 1
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    with open(f"{sys.argv[1]}/meson-logs/testlog.json", encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            one = counts(test)
            total = [a + b for a, b in zip(total, one)]
            if one[1]:
                print(f"FAILED {test['name']} ({test['result']}): {one[1]} of {one[0] + one[1]}")
            if one[2]:
                why = re.findall(r"^(?:skipped: |# SKIP ).*", test.get("stdout") or "", re.M)
                print(f"skipped {one[2]} of {test['name']}: " + "; ".join(why)[:400])
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] or not total[0] else 0


sys.exit(main())
