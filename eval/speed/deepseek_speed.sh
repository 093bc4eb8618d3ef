#!/usr/bin/env bash
# DeepSeek-V4.1 on this machine: ./eval/speed/deepseek_speed.sh [--quick] [--own] [--threads N]
# [--rounds N] [--minutes N] [--csv FILE]
# Writes a checkpoint of random weights with the model's structure (once; 2.7 GB, 0.7 GB of it for a
# token), then measures plumb, and in turn fastllm (PyPI ftllm 1.9.0) with the same files; --own:
# without it. RATIO <what> <value> <goal>: decode's share of the read bandwidth, prefill's of the
# multiply-adds, both against fastllm. See docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

FASTLLM_SHA256=2892bdf3eced49b5731abc1bac76244e029021212c0ce7bc60bce6b94cdb7245
export FASTLLM_VERSION=1.9.0

# Sets DEEPSEEK_CHECKPOINT.
find_checkpoint() {
  export DEEPSEEK_SHAPE=$1 DEEPSEEK_CHECKPOINT=$SPEED_CACHE/speed/deepseek-$1
  mkdir -p "$SPEED_CACHE/speed"
  [[ -f $DEEPSEEK_CHECKPOINT/config.json ]] && return
  step "writing a checkpoint of DeepSeek-V4.1's structure" deepseek-checkpoint \
    python3 "$SPEED_LIB/deepseek_checkpoint.py" "$DEEPSEEK_CHECKPOINT" --shape "$1"
}

# Sets FASTLLM_PACKAGES: a folder to import ftllm and what it needs from. Without its dependencies,
# which are for graphics cards and servers; numpy and pillow are all that loading it asks for.
find_fastllm() {
  export FASTLLM_PACKAGES=${PLUMB_FASTLLM:-$ROOT/build/ftllm-$FASTLLM_VERSION}
  [[ -d $FASTLLM_PACKAGES/ftllm ]] && return
  local requirement part=$FASTLLM_PACKAGES.part
  requirement=$(mktemp)
  echo "ftllm==$FASTLLM_VERSION --hash=sha256:$FASTLLM_SHA256" >"$requirement"
  rm -rf "$part"
  step "installing ftllm $FASTLLM_VERSION" fastllm-install \
    python3 -m pip install --no-deps --require-hashes -r "$requirement" --target "$part"
  step "installing numpy and pillow for it" fastllm-needs \
    python3 -m pip install --target "$part" numpy pillow
  rm -f "$requirement"
  mv "$part" "$FASTLLM_PACKAGES"
}

main() {
  find_plumb
  if [[ " $* " == *" --quick "* ]]; then find_checkpoint quick; else find_checkpoint half; fi
  if [[ " $* " != *" --own "* ]]; then find_fastllm; fi
  export SPEED_CACHE
  compare deepseek_speed.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
