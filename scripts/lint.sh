#!/usr/bin/env bash
# Looks for bug patterns: ./scripts/lint.sh [--all]
# Compiles src/ with clang 19 (thread-safety analysis, warnings are errors), then runs clang-tidy
# over the C++ files that differ from the commit before the last, or over all of them (minutes).
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

TIDY=clang-tidy-19

sources() {
  if [[ ${1:-} == --all ]]; then
    git -C "$ROOT" ls-files 'src/*.cc' 'tests/*.cc'
  else
    { git -C "$ROOT" diff --name-only --diff-filter=d HEAD~1 -- 'src/*.cc' 'tests/*.cc'
      git -C "$ROOT" ls-files --others --exclude-standard 'src/*.cc' 'tests/*.cc'; } | sort -u
  fi
}

main() {
  local files=()
  case ${1:-} in
    '' | --all) ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  "$ROOT/scripts/setup.sh" build rust lint
  build lint all
  mapfile -t files < <(sources "$@")
  if ((${#files[@]} == 0)); then
    say "no C++ file differs"
    return
  fi
  step "$TIDY over ${#files[@]} files" clang-tidy env -C "$ROOT" \
    xargs -n 1 -P "$(nproc)" "$TIDY" -p "$ROOT/build/lint" --quiet < <(printf '%s\n' "${files[@]}")
  say "clean"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
