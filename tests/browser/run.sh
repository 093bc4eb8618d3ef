#!/usr/bin/env bash
# The console in a real browser: tests/browser/run.sh [--unit] [--screenshots]
# Unit tests of its pure modules (--unit: these alone), then Chromium against the real service over
# a scripted generator. --screenshots also asks real models, and writes docs/images. Installs
# Debian's chromium, playwright-core and axe-core when they are missing. Environment: PLUMB_BUILD
# (build/release), PLUMB_CACHE (~/.cache/plumb; what npm installs is kept there), PLUMB_WEB (a
# folder whose files are tried in place of those in the binary).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath -m "${PLUMB_BUILD:-$root/build/release}")
modules=${PLUMB_CACHE:-$HOME/.cache/plumb}/browser-modules
PACKAGES=(chromium fonts-dejavu-core fonts-nanum)
# shellcheck source=../lib/node.sh
source "$here/../lib/node.sh"

say() { echo "browser: $*" >&2; }

missing_packages() {
  local package
  for package in "${PACKAGES[@]}"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      echo "$package"
  done
}

install_packages() {
  local missing=()
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then return; fi
  if ((EUID != 0)); then
    say "run this, then try again: sudo apt-get install -y --no-install-recommends ${missing[*]}"
    exit 1
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null
  apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" \
    >/dev/null
}

main() {
  local unit=0 screenshots=0 argument
  for argument in "$@"; do
    case $argument in
      --unit) unit=1 ;;
      --screenshots) screenshots=1 ;;
      --help | -h)
        awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
        return
        ;;
      *)
        say "unknown option '$argument'; see --help"
        exit 2
        ;;
    esac
  done
  check_node
  node --test "$here/unit/"
  if ((unit)); then return; fi
  install_packages
  install_modules "$here/package.json" "$modules" --ignore-scripts
  cmake --build "$build" --target scripted_server plumb >&2
  export PLUMB_BROWSER_MODULES=$modules PLUMB_SCRIPTED_SERVER PLUMB_BINARY=$build/plumb
  PLUMB_SCRIPTED_SERVER=$(find "$build" -name scripted_server -type f -perm -u+x | head -n 1)
  node --test "$here"/*.test.js
  if ((screenshots)); then node "$here/screenshots.js" "$root/docs/images"; fi
}

main "$@"
