#!/usr/bin/env bash
# A server under twice the load it can serve, with clients that leave: ./scripts/soak.sh
# [--minutes 30] [--model smollm2-135m] [--csv FILE] [SERVE OPTION...]
# Fails when a page, a file or memory leaks, a request is stuck, an answer differs from the same one
# before, or /ready is not green at the end. A line a minute; the CSV (default build/soak.csv) has
# one every five seconds. PLUMB_BINARY names a plumb that is built already.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

SEQUENCES=8       # few, and few pages for them: both run short
KV_MEMORY=96M
READY_SECONDS_MAX=120

main() {
  local minutes=30 model=smollm2-135m csv=$ROOT/build/soak.csv options=() port server status=0
  while (($# > 0)); do
    case $1 in
      --minutes) minutes=${2:?--minutes needs a number}; shift ;;
      --model) model=${2:?--model needs a name or file}; shift ;;
      --csv) csv=${2:?--csv needs a file}; shift ;;
      *) options+=("$1") ;;
    esac
    shift
  done
  [[ $minutes =~ ^[0-9]+([.][0-9]+)?$ ]] || die "--minutes '$minutes' is no number"
  if [[ -z ${PLUMB_BINARY:-} ]]; then
    "$ROOT/scripts/setup.sh" build rust run
    build release plumb
  else
    PLUMB=$PLUMB_BINARY
  fi
  pull "$model"
  port=$(free_port)
  mkdir -p "$LOGS" "$(dirname "$csv")"
  "$PLUMB" serve --model "$model" --port "$port" --sequences "$SEQUENCES" \
    --kv-memory "$KV_MEMORY" --log-level warn "${options[@]}" >"$LOGS/soak.log" 2>&1 &
  server=$!
  wait_ready "$port" "$server" "$READY_SECONDS_MAX" ||
    { tail -n 20 "$LOGS/soak.log" >&2; end "$server"; die "the server did not get ready"; }
  python3 "$ROOT/scripts/lib/soak.py" --port "$port" --pid "$server" --minutes "$minutes" \
    --sequences "$SEQUENCES" --csv "$csv" || status=$?
  end "$server"
  if ((status != 0)); then
    tail -n 20 "$LOGS/soak.log" >&2
    die "soak failed; figures in $csv, the server's log in ${LOGS#"$ROOT"/}/soak.log"
  fi
  say "soak passed: $minutes minutes; figures in $csv"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
