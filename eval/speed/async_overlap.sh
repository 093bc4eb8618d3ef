#!/usr/bin/env bash
# Text and events beside the forward: ./eval/speed/async_overlap.sh [--quick] [--threads N]
# [--rounds N] [--csv FILE]
# SmolLM2-135M, many requests of 16 prompt and 16 output tokens: 64 clients over HTTP, and a file of
# 2,000 lines, asynchronous against --synchronous in turn; by the engine's trace, the share of the
# host's work that a forward hides. Prints RATIO <what> <value> <goal>; see docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  find_models small
  compare async_overlap.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
