#!/usr/bin/env bash
# Shows plumb once, from start to end: ./scripts/demo.sh [QUESTION]
# Installs what is missing, builds, fetches SmolLM2-135M, serves it on a free port, asks one
# question through the HTTP server, prints the streamed answer, stops the server. Exit status 0: all
# of it worked.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

READY_SECONDS_MAX=60
STOP_SECONDS_MAX=20
MODEL=smollm2-135m
server=

stop_server() {
  local status=0 deadline=$((SECONDS + STOP_SECONDS_MAX))
  if [[ -z $server ]]; then return 0; fi
  kill -TERM "$server" 2>/dev/null || true
  while kill -0 "$server" 2>/dev/null && ((SECONDS < deadline)); do sleep 0.1; done
  kill -KILL "$server" 2>/dev/null && say "the server did not stop by itself"
  wait "$server" 2>/dev/null || status=$?
  server=
  return "$status"
}

clean_up() {
  stop_heartbeat
  stop_server || true
}
trap clean_up EXIT

main() {
  local question=${1:-Why is the sky blue?} port log=$LOGS/demo-server.log
  "$ROOT/scripts/setup.sh" build rust run
  build release plumb
  pull "$MODEL"
  port=$(free_port)
  mkdir -p "$LOGS"
  say "serving $MODEL on 127.0.0.1:$port"
  "$PLUMB" serve --model "$MODEL" --host 127.0.0.1 --port "$port" >"$log" 2>&1 </dev/null &
  server=$!
  if ! wait_ready "$port" "$server" "$READY_SECONDS_MAX"; then
    tail -n "$FAILED_LOG_LINES" "$log" >&2
    die "the server did not become ready within $READY_SECONDS_MAX s"
  fi
  say "asking: $question"
  "$PLUMB" chat --url "http://127.0.0.1:$port" --temperature 0 \
    --max-tokens 200 --once "$question" || die "no answer"
  stop_server || die "the server stopped with status $?"
  say "the server has stopped; ./scripts/serve.sh serves until you stop it"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
