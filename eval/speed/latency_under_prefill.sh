#!/usr/bin/env bash
# A long prompt and its neighbours: ./eval/speed/latency_under_prefill.sh [--quick] [--threads N]
# [--rounds N] [--csv FILE] [--itl-target-ms MS]
# Qwen2.5-Coder-0.5B over HTTP: p99 of the time between two tokens of 8 running streams, and the
# first token of a 100-token request, while a 16k-token prompt is computed, against without it.
# Prints RATIO <what> <value> <goal>; see docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  if [[ " $* " == *" --quick "* ]]; then find_models small; else find_models; fi
  compare latency_under_prefill.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
