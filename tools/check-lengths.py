#!/usr/bin/env python3
"""Refuses what is too long to be read: functions over 100 lines, files over 900, lines over 100 columns.

Tables and one dispatch switch may be longer when tools/length-allow names them (FILE:FUNCTION a line).
Prints how many functions exceed 60 lines, which is worth asking why.
"""
import re
import subprocess
import sys

FUNCTION_MAX, FUNCTION_WHY, FILE_MAX, COLUMNS_MAX, TAB = 100, 60, 900, 100, 8


def functions(lines):
    """(name, length) of each function: its body stands between braces in the first column."""
    start = None
    name = "?"
    for number, line in enumerate(lines):
        head = re.match(r"^[A-Za-z_].*?\b(\w+)\(", line)
        if head and not line.startswith("#"):
            name = head.group(1)
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            yield name, number - start + 1
            start = None


def main():
    with open("tools/length-allow", encoding="utf-8") as f:
        allowed = {line.split("#")[0].strip() for line in f}
    files = subprocess.run(["tools/sources.sh", "*.c", "*.h"], check=True, capture_output=True, text=True)
    bad, count, long = [], 0, 0
    for path in files.stdout.split():
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        if len(lines) - 1 > FILE_MAX:
            bad.append(f"{path}: {len(lines) - 1} lines")
        for number, line in enumerate(lines, 1):
            if len(line.expandtabs(TAB)) > COLUMNS_MAX:
                bad.append(f"{path}:{number}: {len(line.expandtabs(TAB))} columns")
        for name, length in functions(lines):
            count += 1
            long += length > FUNCTION_WHY
            if length > FUNCTION_MAX and f"{path}:{name}" not in allowed:
                bad.append(f"{path}: {name}() has {length} lines")
    print("\n".join(bad))
    print(f"{count} functions, {long} over {FUNCTION_WHY} lines")
    return 1 if bad else 0


sys.exit(main())
