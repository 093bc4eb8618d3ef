#!/usr/bin/env bash
# What people talk to plumb with, against a server: tests/clients/run.sh [PART...] [-- ARG...]
# Parts: sdk (the official Python SDKs, raw sockets, signals; smollm2-135m), libraries (on top of
# them; v41-mini), node (the SDKs for Node.js; v41-mini). Default: all; node where Node.js 20 is.
# ARG... goes to pytest. Environment: PLUMB_BINARY (build/release/plumb), PLUMB_CLIENTS_MODEL,
# PLUMB_CACHE (~/.cache/plumb; what pip and npm install is kept there).
set -euo pipefail

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
  exit 0
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PLUMB_BINARY=$(realpath -m "${PLUMB_BINARY:-$here/../../build/release/plumb}")
cache=${PLUMB_CACHE:-$HOME/.cache/plumb}
# PYTHONDONTWRITEBYTECODE and no cache: the source tree stays as it is.
export PLUMB_BINARY PYTHONDONTWRITEBYTECODE=1
PYTEST=(-p no:cacheprovider -q --maxfail=5)
# shellcheck source=../lib/node.sh
source "$here/../lib/node.sh"

say() { echo "clients: $*" >&2; }

# venv NAME REQUIREMENTS PIP_ARGUMENT...
venv() {
  local folder=$cache/$1 requirements=$2
  shift 2
  if cmp -s "$requirements" "$folder/installed.txt"; then return; fi
  say "installing what ${requirements#"$here/"} names"
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" -r "$requirements"
  cp "$requirements" "$folder/installed.txt"
}

run_sdk() {
  venv venv-clients "$here/requirements.txt"
  env -C "$here" "$cache/venv-clients/bin/pytest" "${PYTEST[@]}" --ignore=libraries "$@"
}

# Their requirements name everything, so that pip need not look for what fits.
run_libraries() {
  venv venv-libraries "$here/libraries/requirements.txt" --no-deps
  LITELLM_LOCAL_MODEL_COST_MAP=True PYTHONPATH=$here env -C "$here/libraries" \
    "$cache/venv-libraries/bin/pytest" "${PYTEST[@]}" -W ignore "$@"
}

run_node() {
  local modules=$cache/client-modules
  check_node
  install_modules "$here/node/package.json" "$modules" --ignore-scripts
  PLUMB_NODE_MODULES=$modules node --test "$here/node/"
}

main() {
  local part parts=()
  while (($# > 0)) && [[ $1 != -- ]]; do
    case $1 in
      sdk | libraries | node) parts+=("$1") ;;
      *) say "no part '$1'; see --help"; exit 2 ;;
    esac
    shift
  done
  if (($# > 0)); then shift; fi
  if [[ ! -x $PLUMB_BINARY ]]; then
    say "no plumb at $PLUMB_BINARY: build it first (./scripts/serve.sh does)"
    exit 1
  fi
  if ((${#parts[@]} == 0)); then
    parts=(sdk libraries)
    if has_node; then parts+=(node); else say "no Node.js $NODE_MIN here: node is left out"; fi
  fi
  for part in "${parts[@]}"; do "run_$part" "$@"; done
}

main "$@"
