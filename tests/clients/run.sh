#!/usr/bin/env bash
# The official openai SDK, raw sockets and signals against a running plumb server: what only a whole
# process with a real model can show. Usage: tests/clients/run.sh [PYTEST_ARGUMENT...]
# Environment: PLUMB_BINARY (build/release/plumb), PLUMB_CLIENTS_MODEL (smollm2-135m),
# PLUMB_CACHE (~/.cache/plumb; the Python environment is kept there).
set -euo pipefail

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
  exit 0
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PLUMB_BINARY=$(realpath -m "${PLUMB_BINARY:-$here/../../build/release/plumb}")
export PLUMB_BINARY
venv=${PLUMB_CACHE:-$HOME/.cache/plumb}/venv-clients

if [[ ! -x $PLUMB_BINARY ]]; then
  echo "no plumb at $PLUMB_BINARY: build it first (./scripts/serve.sh does)" >&2
  exit 1
fi
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/installed.txt"
fi
# PYTHONDONTWRITEBYTECODE and no cache: the source tree stays as it is.
export PYTHONDONTWRITEBYTECODE=1
cd "$here"
exec "$venv/bin/pytest" -p no:cacheprovider -q --maxfail=5 "$@"
