# scripts/lib/common.sh
# What every script starts from: the root folder, messages, and step(), which runs a command
# quietly, shows that it is alive, and shows the end of its log when it fails. To be sourced.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LOGS=$ROOT/build/log
HEARTBEAT_SECONDS=10
FAILED_LOG_LINES=40
heartbeat_pid=

# rustup's folder is not on every shell's PATH.
if [[ -d ${HOME:-}/.cargo/bin ]]; then PATH=$PATH:$HOME/.cargo/bin; fi

say() { echo "plumb: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# The comment that a script opens with is its help.
show_help() {
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
  exit 0
}

stop_heartbeat() {
  if [[ -n $heartbeat_pid ]]; then
    kill "$heartbeat_pid" 2>/dev/null || true
    wait "$heartbeat_pid" 2>/dev/null || true
    heartbeat_pid=
  fi
}

# Prints the last line of log $1 from time to time, until killed.
heartbeat() {
  local log=$1 start=$SECONDS
  while sleep "$HEARTBEAT_SECONDS" >/dev/null 2>&1; do
    say "  $((SECONDS - start)) s: $(tail -n 1 "$log" | tr -d '\r' | cut -c1-90)"
  done
}

# step LABEL LOG COMMAND...: the command's output goes to build/log/LOG.log.
step() {
  local label=$1 log=$LOGS/$2.log start=$SECONDS status=0
  shift 2
  mkdir -p "$LOGS"
  say "$label"
  : >"$log"
  heartbeat "$log" &
  heartbeat_pid=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  stop_heartbeat
  if ((status != 0)); then
    tail -n "$FAILED_LOG_LINES" "$log" >&2
    die "failed after $((SECONDS - start)) s: $label (status $status; all of it in ${log#"$ROOT"/})"
  fi
  if ((SECONDS - start >= HEARTBEAT_SECONDS)); then say "  done in $((SECONDS - start)) s"; fi
}

trap stop_heartbeat EXIT
