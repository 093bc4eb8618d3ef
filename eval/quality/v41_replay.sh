#!/usr/bin/env bash
# What bounded replay costs: ./eval/quality/v41_replay.sh [--csv FILE] [--prompts N]
# DeepSeek-V4.1's decoder computes only the last K rows of a prompt. For the long prompts of
# tests/golden/v41/trained and several K: how far are the last row's logits from those of a decoder
# that computes every row (KL, top-1, largest logit error)? Fails when that is not zero from the K
# on that reaches every row, or when a K below window + 6 is not refused.
# Variables: PLUMB_BINARY.
set -euo pipefail
# shellcheck source=../speed/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../speed/lib/setup.sh"

main() {
  local commit
  find_plumb
  commit=$(git -C "$ROOT" describe --always --dirty 2>/dev/null || echo unknown)
  PYTHONDONTWRITEBYTECODE=1 exec python3 "$ROOT/eval/quality/lib/v41_replay.py" \
    --commit "$commit" --trained "$ROOT/tests/golden/v41/trained" "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
