#!/usr/bin/env bash
# Runs the commands that README.md and docs/ show: ./scripts/check_docs.sh
# Every block that opens with "```sh run" is run in a scratch folder, with plumb on PATH and the
# default model served on 127.0.0.1:8000, the address that the documents use.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

PORT=8000
READY_SECONDS_MAX=60
MODEL=smollm2-135m
server=

clean_up() {
  stop_heartbeat
  if [[ -n $server ]]; then end "$server"; fi
}

main() {
  local documents=()
  trap clean_up EXIT
  "$ROOT/scripts/setup.sh" build rust run
  build release plumb
  pull "$MODEL"
  mkdir -p "$LOGS"
  "$PLUMB" serve --model "$MODEL" --port "$PORT" >"$LOGS/check-docs.log" 2>&1 </dev/null &
  server=$!
  wait_ready "$PORT" "$server" "$READY_SECONDS_MAX" ||
    die "no server on port $PORT: $(tail -n 3 "$LOGS/check-docs.log")"
  mapfile -t documents < <(cd "$ROOT" && git ls-files README.md 'docs/*.md')
  (cd "$ROOT" && python3 tests/tidy/doc_commands.py --path "$ROOT/build/release" "${documents[@]}")
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
