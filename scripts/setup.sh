#!/usr/bin/env bash
# Installs what is missing, by apt: ./scripts/setup.sh [GROUP...]
# Groups are those of scripts/packages.txt: build rust run runtime test fuzz lint (default: build
# rust run). As another user than root it prints the command to run and exits 1. Quick when all is
# there. PLUMB_SKIP_SETUP=1 skips it all, for systems other than Debian 12.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

RUST_MIN=1.85  # of the crates in rust/Cargo.lock

rust_is_new_enough() {
  local version
  version=$(cargo --version 2>/dev/null | awk '{ print $2 }') || return 1
  [[ -n $version && $(printf '%s\n' "$RUST_MIN" "$version" | sort -V | head -n 1) == "$RUST_MIN" ]]
}

packages_of() {
  awk -v group="$1" '$1 == group { print $2 }' "$ROOT/scripts/packages.txt"
}

installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# The packages of the groups given that are not installed, one a line.
missing_packages() {
  local group package
  for group in "$@"; do
    if [[ $group == rust ]] && rust_is_new_enough; then continue; fi
    while read -r package; do
      installed "$package" || echo "$package"
    done < <(packages_of "$group")
  done | sort -u
}

install_packages() {
  local apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  export DEBIAN_FRONTEND=noninteractive
  step "reading the lists of packages" apt-update "${apt[@]}" update
  step "installing $# packages" apt-install "${apt[@]}" install -y --no-install-recommends "$@"
}

main() {
  local groups=("$@") missing=() group
  if ((${#groups[@]} == 0)); then groups=(build rust run); fi
  for group in "${groups[@]}"; do
    [[ $group != -* && -n $(packages_of "$group") ]] || die "no group '$group'; see --help"
  done
  if [[ ${PLUMB_SKIP_SETUP:-} == 1 ]]; then return; fi
  type -P dpkg-query apt-get >/dev/null ||
    die "this is no Debian: install what scripts/packages.txt names, then set PLUMB_SKIP_SETUP=1"
  mapfile -t missing < <(missing_packages "${groups[@]}")
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    say "packages are missing, and installing them needs root. Run this, then try again:"
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends" \
      "${missing[*]}" >&2
    exit 1
  fi
  install_packages "${missing[@]}"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
