#!/usr/bin/env bash
# /openapi.json against the server that gives it: schemathesis asks every endpoint what the document
# allows and forbids, and checks statuses, content types, headers, bodies and events of streams.
# Usage: tests/schemathesis/run.sh [--minutes N (5)] [--seed N (1)]
# A scripted generator answers; files and batches are kept in a folder that goes with the server.
# Not used: positive_data_acceptance, since fields exclude each other. An operation without a 2xx
# fails the run. Reports: build/schemathesis/. Binaries: $PLUMB_BUILD.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath -m "${PLUMB_BUILD:-$root/build/release}")
work=$root/build/schemathesis
key=schemathesis-key-of-tests
minutes=5
seed=1

say() { echo "schemathesis: $*" >&2; }

while (($#)); do
  case $1 in
    --minutes) minutes=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --help | -h)
      awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
      exit 0
      ;;
    *)
      say "unknown option '$1'; see --help"
      exit 2
      ;;
  esac
done

mkdir -p "$work"
if ! cmp -s "$here/requirements.txt" "$work/installed.txt"; then
  say "installing schemathesis"
  rm -rf "$work/venv"
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$work/installed.txt"
fi
server=$(find "$build" -name scripted_server -type f -perm -u+x | head -n 1)
if [[ -z $server ]]; then
  say "no scripted_server below $build: build it first (cmake --build $build -t scripted_server)"
  exit 1
fi

# The server ends with its standard input, which this shell holds.
coproc SERVER { exec "$server" --deepseek --key "$key"; }
# shellcheck disable=SC2153  # coproc assigns it
server_pid=$SERVER_PID
read -r url <&"${SERVER[0]}"

# upload WORD: a batch's input that asks so; says the file's id.
upload() {
  local body='{"model": "scripted", "messages": [{"role": "user", "content": "'$1'"}]}'
  echo '{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": '"$body}" |
    curl -sf "${url}v1/files" -H "Authorization: Bearer $key" -F purpose=batch \
      -F "file=@-;filename=batch.jsonl" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'
}
# Files of other names are refused by right; a batch that never ends can be cancelled.
PLUMB_SCHEMATHESIS_FILE=$(upload hello)
PLUMB_SCHEMATHESIS_ENDLESS_FILE=$(upload forever)
export PLUMB_SCHEMATHESIS_FILE PLUMB_SCHEMATHESIS_ENDLESS_FILE
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here SCHEMATHESIS_HOOKS=hooks
export PLUMB_SCHEMATHESIS_MODELS='["scripted", "scripted-alias"]'
export PLUMB_SCHEMATHESIS_STATUSES=$work/statuses.json PLUMB_SCHEMATHESIS_SEED=$seed
status=0
cd "$work"
"$work/venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "${url}openapi.json" \
  --header "Authorization: Bearer $key" --seed "$seed" --max-time $((minutes * 60)) || status=$?
if ! kill -0 "$server_pid" 2>/dev/null; then
  say "the server is gone"
  exit 1
fi
"$work/venv/bin/python" "$here/statuses.py" "$work/statuses.json" || exit 1
exit "$status"
