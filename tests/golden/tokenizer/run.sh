#!/usr/bin/env bash
# Runs the tokenizer goldens: run.sh PROGRAM [gtest options]. Fails, and says what to run, when the
# data is not there: a test that skips itself proves nothing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$("$here/fetch.sh" --where)
model=$data/../../models/smollm2-135m
if [[ ! -d $data ]]; then
  echo "the vectors are not in $data; run $here/fetch.sh" >&2
  exit 1
fi
smollm2=$(find "$model" -maxdepth 1 -name '*.gguf' 2>/dev/null | head -n 1 || true)
if [[ -z $smollm2 ]]; then
  echo "smollm2-135m is not in the cache folder; run: plumb model pull smollm2-135m" >&2
  exit 1
fi
program=$1
shift
exec "$program" "$@" "$data" "$here" "$smollm2"
