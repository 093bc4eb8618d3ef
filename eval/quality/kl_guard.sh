#!/usr/bin/env bash
# No speed from coarser arithmetic: ./eval/quality/kl_guard.sh [--models NAME,...] [--windows N]
# [--threads N] [--csv FILE]
# Runs a model's file and its own weights as exact F32, in plumb and in llama.cpp, over the same
# tokens of a public-domain text; prints RATIO kl_<model> <plumb's mean KL / llama.cpp's> 1.1.
# Variables: PLUMB_BINARY, PLUMB_LLAMACPP_BUILD, PLUMB_SPEED_CACHE, SMOLLM2_GGUF, QWEN_05B_GGUF.
set -euo pipefail
# shellcheck source=../speed/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../speed/lib/setup.sh"

# The C++ part needs the headers of the source that the build was made from.
build_llamacpp_kl() {
  local source folder=$SPEED_CACHE/quality
  source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "${LLAMACPP%/bin}/CMakeCache.txt")
  [[ -f $source/include/llama.h ]] || die "no llama.h in '$source', where llama.cpp was built from"
  mkdir -p "$folder"
  LLAMACPP_KL=$folder/llamacpp_kl
  step "building llamacpp_kl" llamacpp-kl \
    c++ -std=c++20 -O2 -I"$source/include" -I"$source/ggml/include" \
    "$ROOT/eval/quality/lib/llamacpp_kl.cc" -L"$LLAMACPP" -Wl,-rpath,"$LLAMACPP" \
    -lllama -lggml -lggml-base -o "$LLAMACPP_KL"
  export LLAMACPP_KL
}

main() {
  find_plumb
  find_llamacpp
  build_llamacpp_kl
  SMOLLM2_GGUF=$(model_file SMOLLM2_GGUF smollm2-135m)
  if [[ " $* " != *" --models "* || " $* " == *qwen* ]]; then
    QWEN_05B_GGUF=$(model_file QWEN_05B_GGUF qwen2.5-coder-0.5b)
  fi
  export SMOLLM2_GGUF QWEN_05B_GGUF SPEED_CACHE
  mkdir -p "$SPEED_CACHE/speed"  # quantisations that are made here
  PLUMB_SPEED_COMMIT=$(git -C "$ROOT" describe --always --dirty 2>/dev/null || echo unknown)
  export PLUMB_SPEED_COMMIT PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$SPEED_LIB
  exec python3 "$ROOT/eval/quality/lib/kl_guard.py" --root "$ROOT" "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
