#!/usr/bin/env bash
# What reused prefixes save: ./eval/speed/prefix_ttft.sh [--quick] [--threads N] [--rounds N]
# [--csv FILE]
# SmolLM2-135M over HTTP: time to one token of 2,064 tokens of which 2,048 are cached, against none;
# and the pages that 10,000 requests with one system prompt leave behind, against those of the
# prompt. Prints RATIO <what> <value> <goal>; see docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  find_models small
  compare prefix_ttft.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
