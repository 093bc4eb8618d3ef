#!/usr/bin/env bash
# Compares a model's logits with the NumPy reference's (manifest.json says how those were made).
#
#   check.sh MODEL    MODEL is smollm2-135m or qwen2.5-coder-0.5b
#
# The model is fetched by `plumb model pull` when it is not in the cache. Variables:
#   PLUMB_MODEL_FILE  a .gguf file to use instead        PLUMB_BUILD  build folder (build/release)
#   PLUMB_CACHE       cache folder (~/.cache/plumb)      PLUMB_NO_PULL=1  fail rather than fetch
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${PLUMB_BUILD:-$root/build/release}

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }
case "${1:-}" in
  -h|--help) usage; exit 0 ;;
  "") usage >&2; exit 2 ;;
esac
model=$1
goldens=$here/$model.json
if [[ ! -f $goldens ]]; then
  echo "check.sh: no goldens for \"$model\"; there are: $(cd "$here" && ls ./*.json | sed -n 's,^\./\(.*[0-9]b\|.*[0-9]m\)\.json$,\1,p' | tr '\n' ' ')" >&2
  exit 2
fi
checker=$build/tests/golden/logits/check_logits
if [[ ! -x $checker ]]; then
  echo "check.sh: $checker is not built; run: cmake --build $build --target check_logits" >&2
  exit 2
fi

folder=${PLUMB_CACHE:-$HOME/.cache/plumb}/models/$model
find_model() { find "$folder" -maxdepth 1 -name '*.gguf' 2>/dev/null | sort | head -n 1; }
file=${PLUMB_MODEL_FILE:-$(find_model)}
if [[ -z $file && ${PLUMB_NO_PULL:-0} != 1 ]]; then
  "$build/plumb" model pull "$model" >&2
  file=$(find_model)
fi
if [[ -z $file ]]; then
  echo "check.sh: $model is not in $folder; run: plumb model pull $model" >&2
  exit 2
fi

want=$(sed -n "/\"$model\": {/,/}/s/.*\"model_sha256\": \"\([0-9a-f]*\)\".*/\1/p" "$here/manifest.json")
have=$(sha256sum "$file" | cut -d' ' -f1)
if [[ $want != "$have" ]]; then
  echo "check.sh: the file is not the model that the goldens were made of (sha256 $have, expected $want)" >&2
  exit 2
fi
exec "$checker" "$goldens" "$file"
