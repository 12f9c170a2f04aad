#!/bin/bash
# clang-format decides, and nobody discusses it.
set -euo pipefail
tools/sources.sh '*.c' '*.h' | xargs clang-format --dry-run -Werror
