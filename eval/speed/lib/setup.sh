# eval/speed/lib/setup.sh
# What the comparisons stand on: plumb, llama.cpp built as it is fastest here, model files. To be
# sourced. Each function says nothing when there is nothing to do.
# shellcheck shell=bash

# shellcheck source=../../../scripts/lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib/common.sh"
# shellcheck source=../../../scripts/lib/build.sh
source "$ROOT/scripts/lib/build.sh"

SPEED_LIB=$ROOT/eval/speed/lib
SPEED_CACHE=${PLUMB_SPEED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
LLAMACPP_PACKAGE=llama-cpp-python==0.3.36  # its sdist carries llama.cpp's source
LLAMACPP_SHA256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
LLAMACPP_TOOLS=(llama-bench llama-batched-bench llama-quantize llama-server)

# Sets PLUMB: the binary of PLUMB_BINARY, else build/release/plumb, built when it is not there.
find_plumb() {
  if [[ -n ${PLUMB_BINARY:-} ]]; then
    PLUMB=$PLUMB_BINARY
  elif [[ ! -x $PLUMB ]]; then
    "$ROOT/scripts/setup.sh" build rust run
    build release plumb
  fi
  [[ -x $PLUMB ]] || die "no plumb at '$PLUMB'"
  export PLUMB
}

# Downloads the source, checks it and unpacks it into $1.
get_llamacpp() {
  local folder=$1 requirement
  requirement=$(mktemp)
  echo "$LLAMACPP_PACKAGE --hash=sha256:$LLAMACPP_SHA256" >"$requirement"
  step "downloading $LLAMACPP_PACKAGE (source)" llamacpp-download \
    python3 -m pip download --no-deps --no-binary :all: --require-hashes -r "$requirement" \
    -d "$folder"
  rm -f "$requirement"
  mkdir -p "$folder/source"
  tar -xzf "$folder"/llama_cpp_python-*.tar.gz -C "$folder/source" --strip-components 1
}

# Sets LLAMACPP, the folder of its tools: PLUMB_LLAMACPP_BUILD/bin, or one that is built here with
# the processor's own instructions, or those of AVX2 where plumb may use no more.
find_llamacpp() {
  local folder=$SPEED_CACHE/llama.cpp build=build tool lock
  local -a instructions=(-DGGML_NATIVE=ON)
  if [[ ${PLUMB_KERNELS:-auto} == avx2 ]]; then
    build='build-avx2'
    instructions=(-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON
      -DGGML_BMI2=ON)
  fi
  LLAMACPP=${PLUMB_LLAMACPP_BUILD:-$folder/$build}/bin
  if [[ -z ${PLUMB_LLAMACPP_BUILD:-} && ! -x $LLAMACPP/llama-server ]]; then
    mkdir -p "$folder"
    exec {lock}>"$folder/.lock"
    flock "$lock"  # two scripts at once: the second finds it built
    if [[ ! -f $folder/source/vendor/llama.cpp/CMakeLists.txt ]]; then get_llamacpp "$folder"; fi
    step "configuring llama.cpp" llamacpp-configure \
      cmake -G Ninja -S "$folder/source/vendor/llama.cpp" -B "$folder/$build" \
      -DCMAKE_BUILD_TYPE=Release "${instructions[@]}" -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
      -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF \
      -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON
    step "building llama.cpp (minutes)" llamacpp-build \
      ninja -C "$folder/$build" -j "$(jobs_count)" "${LLAMACPP_TOOLS[@]}"
  fi
  for tool in "${LLAMACPP_TOOLS[@]}"; do
    [[ -x $LLAMACPP/$tool ]] || die "no $tool in '$LLAMACPP'; build it there, or unset" \
      "PLUMB_LLAMACPP_BUILD"
  done
  export LLAMACPP LD_LIBRARY_PATH="$LLAMACPP${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

# model_file VARIABLE ALIAS: prints the path in the variable, else of the alias, pulled once.
model_file() {
  if [[ -n ${!1:-} ]]; then
    [[ -f ${!1} ]] || die "$1: there is no file '${!1}'"
    echo "${!1}"
    return
  fi
  "$PLUMB" model pull "$2" >&2
  "$PLUMB" model inspect "$2" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["path"])'
}

# Sets the models' paths, and the folder for files that are made of them.
find_models() {
  SMOLLM2_GGUF=$(model_file SMOLLM2_GGUF smollm2-135m)
  if [[ ${1:-} != small ]]; then
    QWEN_05B_GGUF=$(model_file QWEN_05B_GGUF qwen2.5-coder-0.5b)
    QWEN_15B_GGUF=$(model_file QWEN_15B_GGUF qwen2.5-coder-1.5b)
  fi
  export SMOLLM2_GGUF QWEN_05B_GGUF QWEN_15B_GGUF SPEED_CACHE
  mkdir -p "$SPEED_CACHE/speed"
}

# What a script that compares ends with: its Python part takes over this process, so that a signal
# reaches it.
compare() {
  local part=$1
  shift
  export PLUMB_SPEED_COMMIT
  PLUMB_SPEED_COMMIT=$(git -C "$ROOT" describe --always --dirty 2>/dev/null || echo unknown)
  export PYTHONDONTWRITEBYTECODE=1
  exec python3 "$SPEED_LIB/$part" --results "$ROOT/eval/speed/results" "$@"
}
