#!/usr/bin/env bash
# Gets llama.cpp's tokenizer vectors, vocabularies and chat templates: from the source package of
# PyPI llama-cpp-python (its sha256 below), by pip, once. They lie in golden/ of the cache folder
# (PLUMB_CACHE, else XDG_CACHE_HOME/plumb, else ~/.cache/plumb).
# fetch.sh gets them if they are not there
# fetch.sh --where prints the folder
set -euo pipefail

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
archive=llama_cpp_python-$version.tar.gz
if [[ -n ${PLUMB_CACHE:-} ]]; then
  cache=$PLUMB_CACHE
elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
  cache=$XDG_CACHE_HOME/plumb
else
  cache=$HOME/.cache/plumb
fi
folder=$cache/golden/llama-cpp-python-$version

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
echo "getting $archive by pip (77 MB)"
python3 -m pip download --quiet --no-deps --no-binary=:all: --dest "$work" \
  "llama-cpp-python==$version"
echo "$sha256  $work/$archive" | sha256sum --check --quiet
mkdir "$work/models"
tar -xzf "$work/$archive" -C "$work/models" --strip-components=4 \
  "llama_cpp_python-$version/vendor/llama.cpp/models"
mv -T "$work/models" "$folder" 2>/dev/null || [[ -d $folder ]]
echo "in $folder"
