#!/usr/bin/env bash
# Builds plumb and puts it on PATH: ./scripts/install.sh [PREFIX]
# PREFIX is /usr/local by default (needs root), or for example ~/.local. Model files stay in the
# cache folder (PLUMB_CACHE, else ~/.cache/plumb), but for the one that comes with plumb; remove all
# of it with: rm -r PREFIX/bin/plumb PREFIX/share/plumb
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

main() {
  local prefix=${1:-/usr/local}
  [[ $prefix != -* ]] || die "unknown option '$prefix'; see --help"
  "$ROOT/scripts/setup.sh" build rust run
  build release plumb
  mkdir -p "$prefix/bin" "$prefix/share" 2>/dev/null || true
  [[ -w $prefix/bin && -w $prefix/share ]] ||
    die "cannot write to $prefix; run: sudo cmake --install build/release --prefix $prefix"
  step "installing to $prefix/bin" install cmake --install "$ROOT/build/release" --prefix "$prefix"
  say "$("$prefix/bin/plumb" version | head -n 1)"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
