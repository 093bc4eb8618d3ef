#!/usr/bin/env bash
# Speculation on prompts that edit code and JSON: ./eval/speed/speculation.sh [--quick]
# [--model small|large|FILE] [--speculation MODE] [--threads N] [--rounds N] [--csv FILE]
# Greedy answers of Qwen2.5-Coder with and without, in turn: decode speed of one stream and of 16,
# and whether the answers are the same. Prints RATIO <what> <value> <goal>; see docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

main() {
  find_plumb
  case " $* " in
    *" --model small "*) QWEN_05B_GGUF=$(model_file QWEN_05B_GGUF qwen2.5-coder-0.5b) ;;
    *" --model large "*) QWEN_15B_GGUF=$(model_file QWEN_15B_GGUF qwen2.5-coder-1.5b) ;;
    *" --model "*) ;;
    *) QWEN_15B_GGUF=$(model_file QWEN_15B_GGUF qwen2.5-coder-1.5b) ;;
  esac
  export QWEN_05B_GGUF=${QWEN_05B_GGUF:-} QWEN_15B_GGUF=${QWEN_15B_GGUF:-}
  export SPEED_PROMPTS=$ROOT/eval/speed/prompts
  compare speculation.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
