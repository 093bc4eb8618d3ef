#!/usr/bin/env bash
# plumb's engine core against llama.cpp: ./eval/speed/compare_llamacpp.sh [--quick]
# [--only WHAT,...] [--models NAME,...] [--threads N] [--rounds N] [--csv FILE]
# Builds llama.cpp (once, pinned source, native flags), makes the quantisations, runs both in turn
# and prints a line for each claim: RATIO <what> <value> <goal>. See docs/speed.md, also for the
# variables that name a binary, a build or model files which are there already.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  find_llamacpp
  if [[ " $* " == *" --quick "* && " $* " != *qwen* && " $* " != *16k* ]]; then
    find_models small
  else
    find_models
  fi
  compare compare_llamacpp.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
