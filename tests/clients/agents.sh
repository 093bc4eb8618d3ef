#!/usr/bin/env bash
# Coding agents against plumb: tests/clients/agents.sh [AGENT...] (codex claude_code opencode)
# Each corrects a word in a file while a scripted engine replays a correct session through the real
# routes and parsers. Fails when a request is refused or sent again, or the file is not as asked.
# Installs pinned packages by npm, 1.2 GB. Environment: PLUMB_BUILD (build/release), PLUMB_CACHE
# (~/.cache/plumb; they stay there), PLUMB_AGENT_RECORD (a folder for every request and answer).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath -m "${PLUMB_BUILD:-$root/build/release}")
PLUMB_AGENT_MODULES=${PLUMB_CACHE:-$HOME/.cache/plumb}/agent-modules
PLUMB_AGENT_SERVER=$build/tests/clients/agent_server
export PLUMB_AGENT_MODULES PLUMB_AGENT_SERVER PYTHONDONTWRITEBYTECODE=1
NODE_MIN=20

say() { echo "agents: $*" >&2; }

check_node() {
  local version
  version=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || true
  if [[ -z $version ]] || ((version < NODE_MIN)); then
    say "Node.js $NODE_MIN or later is needed, with npm: https://nodejs.org"
    exit 1
  fi
}

# Into a folder of its own: the source tree stays as it is.
install_modules() {
  local modules=$PLUMB_AGENT_MODULES
  if cmp -s "$here/agents/package.json" "$modules/installed.json"; then return; fi
  say "installing $(grep -o '"[^"]*": "[0-9][^"]*"' "$here/agents/package.json" | tr '\n' ' ')"
  rm -rf "$modules"
  mkdir -p "$modules"
  cp "$here/agents/package.json" "$modules/package.json"
  npm install --silent --no-audit --no-fund --prefix "$modules"
  cp "$here/agents/package.json" "$modules/installed.json"
}

main() {
  local agent failed=0
  if [[ ${1:-} == --help || ${1:-} == -h ]]; then
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
    return
  fi
  if (($# == 0)); then set -- codex claude_code opencode; fi
  check_node
  install_modules
  cmake --build "$build" --target agent_server >&2
  for agent in "$@"; do
    python3 "$here/agents/check.py" "$agent" || failed=1
  done
  return "$failed"
}

main "$@"
