#!/usr/bin/env bash
# Runs the whole JSON-Schema-Test-Suite: run.sh PROGRAM [its options]. Fails, and says what to run,
# when the suite is not there.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
suite=$("$here/fetch.sh" --where)
if [[ ! -d $suite ]]; then
  echo "the suite is not in $suite; run tests/golden/grammar/fetch.sh" >&2
  exit 1
fi
program=$1
shift
exec "$program" --suite "$suite" "$@"
