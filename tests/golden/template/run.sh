#!/usr/bin/env bash
# Runs the chat template goldens: run.sh PROGRAM [gtest options]. The templates come with the
# tokenizer vectors; fails, and says what to run, when they are not there.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$("$here/../tokenizer/fetch.sh" --where)
if [[ ! -d $data/templates ]]; then
  echo "the templates are not in $data; run tests/golden/tokenizer/fetch.sh" >&2
  exit 1
fi
program=$1
shift
exec "$program" "$@" "$data/templates" "$here"
