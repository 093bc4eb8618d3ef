#!/usr/bin/env bash
# Compares a model's logits with the NumPy reference's (manifest.json says how those were made).
#   check.sh MODEL       smollm2-135m, qwen2.5-coder-0.5b or gemma3-270m; fetched by
#                        `plumb model pull` if absent
# Variables: PLUMB_MODEL_FILE, a .gguf file to use instead; PLUMB_BUILD, the build folder
# (build/release); PLUMB_CACHE (~/.cache/plumb); PLUMB_NO_PULL=1, fail rather than fetch.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${PLUMB_BUILD:-$root/build/release}

usage() { sed -n '2,6s/^# \{0,1\}//p' "$0"; }
case "${1:-}" in
  -h|--help) usage; exit 0 ;;
  "") usage >&2; exit 2 ;;
esac
model=$1
goldens=$here/$model.json
if [[ ! -f $goldens ]]; then
  echo "check.sh: no goldens for \"$model\"; models with goldens are listed in manifest.json" >&2
  exit 2
fi
checker=$build/tests/golden/logits/check_logits
if [[ ! -x $checker ]]; then
  echo "check.sh: $checker is missing; run: cmake --build $build --target check_logits" >&2
  exit 2
fi

folder=${PLUMB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}/models/$model
find_model() {
  { find "$folder" -maxdepth 1 -name '*.gguf' 2>/dev/null || true; } | sort | head -n 1
}
file=${PLUMB_MODEL_FILE:-$(find_model)}
if [[ -z $file && ${PLUMB_NO_PULL:-0} != 1 ]]; then
  "$build/plumb" model pull "$model" >&2
  file=$(find_model)
fi
if [[ -z $file ]]; then
  echo "check.sh: $model is not in $folder; run: plumb model pull $model" >&2
  exit 2
fi

# The manifest is written by json.dump with indentation, one key a line.
want=$(sed -n "/^  \"$model\": {/,/^  }/p" "$here/manifest.json" |
  sed -n 's/.*"model_sha256": "\([0-9a-f]*\)".*/\1/p')
have=$(sha256sum "$file" | cut -d' ' -f1)
if [[ $want != "$have" ]]; then
  echo "check.sh: the goldens were made of another file (sha256 $want; this is $have)" >&2
  exit 2
fi
exec "$checker" "$goldens" "$file"
