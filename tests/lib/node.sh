#!/usr/bin/env bash
# Sourced by tests that need Node.js: whether it is there, and packages in a folder of their own, so
# that the source tree stays as it is. The script that sources it has a function `say`.
NODE_MIN=20  # of playwright-core and the SDKs; Debian 12 has 18

has_node() {
  local version
  version=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || true
  [[ -n $version ]] && ((version >= NODE_MIN)) && type -P npm >/dev/null
}

check_node() {
  if has_node; then return; fi
  say "Node.js $NODE_MIN or later is needed, with npm: https://nodejs.org"
  exit 1
}

# install_modules PACKAGE_JSON FOLDER NPM_ARGUMENT...: unless they are there as the file says.
install_modules() {
  local package=$1 folder=$2
  shift 2
  if cmp -s "$package" "$folder/installed.json"; then return; fi
  say "installing $(grep -o '"[^"]*": "[0-9][^"]*"' "$package" | tr '\n' ' ')"
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$package" "$folder/package.json"
  npm install --silent --no-audit --no-fund "$@" --prefix "$folder"
  cp "$package" "$folder/installed.json"
}
