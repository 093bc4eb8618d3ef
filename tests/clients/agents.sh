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
# shellcheck source=../lib/node.sh
source "$here/../lib/node.sh"

say() { echo "agents: $*" >&2; }

main() {
  local agent failed=0
  if [[ ${1:-} == --help || ${1:-} == -h ]]; then
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
    return
  fi
  if (($# == 0)); then set -- codex claude_code opencode; fi
  check_node
  install_modules "$here/agents/package.json" "$PLUMB_AGENT_MODULES"
  cmake --build "$build" --target agent_server >&2
  for agent in "$@"; do
    python3 "$here/agents/check.py" "$agent" || failed=1
  done
  return "$failed"
}

main "$@"
