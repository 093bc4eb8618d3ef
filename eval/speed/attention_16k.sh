#!/usr/bin/env bash
# Attention at 16k tokens of context: ./eval/speed/attention_16k.sh [--quick] [--rounds N] ...
# Qwen2.5-Coder-0.5B, prefill and decode, against llama.cpp. Takes many minutes on two cores, so it
# is no part of compare_llamacpp.sh, whose options it takes.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/compare_llamacpp.sh" --only attention-16k "$@"
