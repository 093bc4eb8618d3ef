#!/usr/bin/env bash
# Attention at 16k tokens of context: ./eval/speed/attention_16k.sh [--quick] [--rounds N] ...
# Qwen2.5-Coder-0.5B, prefill and decode, against llama.cpp, three rounds. A round takes some twenty
# minutes on two cores, nearly all of them llama.cpp's, so it is no part of compare_llamacpp.sh,
# whose options it takes.
set -euo pipefail
# shellcheck source=../../scripts/lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib/common.sh"

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
exec "$ROOT/eval/speed/compare_llamacpp.sh" --only attention-16k --rounds 3 "$@"
