#!/usr/bin/env bash
# Decode while another process takes one core: ./eval/speed/one_core_busy.sh [--threads N]
# [--rounds N] [--quick] [--csv FILE]
# Alternates quiet and busy runs of one stream on SmolLM2 and prints
# RATIO decode-one-core-busy <busy / quiet> 0.45. The busy loop ends with the script.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  find_models small
  compare one_core_busy.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
