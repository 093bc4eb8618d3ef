#!/usr/bin/env bash
# Gets the JSON-Schema-Test-Suite (2020-12): from the source package of PyPI jsonschema (its sha256
# below), by pip, once. It lies in golden/ of the cache folder (PLUMB_CACHE, else
# XDG_CACHE_HOME/plumb, else ~/.cache/plumb).
# fetch.sh gets it if it is not there
# fetch.sh --where prints the folder
set -euo pipefail

version=4.26.0
sha256=0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326
archive=jsonschema-$version.tar.gz
if [[ -n ${PLUMB_CACHE:-} ]]; then
  cache=$PLUMB_CACHE
elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
  cache=$XDG_CACHE_HOME/plumb
else
  cache=$HOME/.cache/plumb
fi
folder=$cache/golden/jsonschema-$version

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
echo "getting $archive by pip (0.4 MB)"
python3 -m pip download --quiet --no-deps --no-binary=:all: --dest "$work" "jsonschema==$version"
echo "$sha256  $work/$archive" | sha256sum --check --quiet
mkdir "$work/suite"
tar -xzf "$work/$archive" -C "$work/suite" --strip-components=4 \
  "jsonschema-$version/json/tests/draft2020-12"
mv -T "$work/suite" "$folder" 2>/dev/null || [[ -d $folder ]]
echo "in $folder"
