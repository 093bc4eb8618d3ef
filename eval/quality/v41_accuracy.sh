#!/usr/bin/env bash
# DeepSeek-V4.1 over HTTP against its reference: ./eval/quality/v41_accuracy.sh [--csv FILE]
# Serves the trained checkpoint (v41-mini) and asks it the 200 problems of tests/golden/v41/trained
# by POST /v1/chat/completions, greedily. The prompts must be the reference's, by hash; the share of
# right answers of each kind must be within 1.5 points of results.json. Prints a table.
# Variables: PLUMB_BINARY.
set -euo pipefail
# shellcheck source=../speed/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../speed/lib/setup.sh"

MODEL=v41-mini
READY_SECONDS_MAX=60
server=

clean_up() {
  stop_heartbeat
  if [[ -n $server ]]; then end "$server"; fi
}

main() {
  local port commit
  trap clean_up EXIT
  find_plumb
  port=$(free_port)
  mkdir -p "$LOGS"
  "$PLUMB" serve --model "$MODEL" --port "$port" >"$LOGS/v41-accuracy.log" 2>&1 </dev/null &
  server=$!
  wait_ready "$port" "$server" "$READY_SECONDS_MAX" ||
    die "no server on port $port: $(tail -n 3 "$LOGS/v41-accuracy.log")"
  commit=$(git -C "$ROOT" describe --always --dirty 2>/dev/null || echo unknown)
  PYTHONDONTWRITEBYTECODE=1 python3 "$ROOT/eval/quality/lib/v41_accuracy.py" \
    --url "http://127.0.0.1:$port" --model "$MODEL" --commit "$commit" \
    --trained "$ROOT/tests/golden/v41/trained" "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
