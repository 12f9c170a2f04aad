#!/bin/bash
# clang-format decides, and nobody discusses it.
set -euo pipefail
git ls-files -z -- '*.c' '*.h' | xargs -r -0 clang-format --dry-run -Werror
