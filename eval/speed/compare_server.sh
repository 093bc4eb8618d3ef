#!/usr/bin/env bash
# plumb serve against llama-server: ./eval/speed/compare_server.sh [--quick] [--only WHAT,...]
# [--threads N] [--rounds N] [--csv FILE]
# SmolLM2-135M Q8_0 over HTTP: 16 clients (256 prompt and 128 output tokens), time to one token for
# 4 and for 1,024 tokens of which 960 are cached, start-up, memory at equal KV capacity. Prints
# RATIO <what> <value> <goal>; see docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  find_llamacpp
  find_models small
  compare compare_server.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
