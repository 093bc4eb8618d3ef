#!/usr/bin/env bash
# Runs the chat goldens with DeepSeek-V4's own tokenizer: run_v4.sh PROGRAM [gtest options]. Exits
# with 77, which ctest shows as skipped, when fetch.sh has not brought it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tokenizer=$("$here/fetch.sh" --where)/tokenizer.json
if [[ ! -f $tokenizer ]]; then
  echo "DeepSeek-V4's tokenizer is not at $tokenizer; run $here/fetch.sh" >&2
  exit 77
fi
program=$1
shift
exec "$program" "$@" "$tokenizer" "$here" "$here/v4_ids.json"
