#!/usr/bin/env bash
# Runs unit tests under sanitizers: ./scripts/sanitize.sh [tsan|asan-ubsan]... [MODULE...]
# Default: both, one after the other, over every module. tsan finds data races, asan-ubsan errors of
# memory and undefined behaviour. Builds cold in about half an hour on two processors, so it is no
# part of test.sh, which runs asan-ubsan only for what parses strangers' bytes. After a change where
# threads meet, `./scripts/sanitize.sh tsan base kvcache engine` is the part that counts.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

MODULES=(base telemetry text net tensor tenancy model kvcache engine api cli)

# sanitize PRESET MODULE...
sanitize() {
  local modules=("${@:2}") pattern
  build "$1" "${modules[@]/%/_test}"
  pattern="^($(IFS='|' && echo "${modules[*]}"))\."
  say "testing ($1)"
  TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    env -C "$ROOT" ctest --preset "$1" -j "$(nproc)" --no-tests=error --timeout 900 \
    -R "$pattern" >"$LOGS/sanitize-$1.log" 2>&1 ||
    { tail -n 40 "$LOGS/sanitize-$1.log" >&2; die "tests failed ($1)"; }
  grep 'tests passed' "$LOGS/sanitize-$1.log"
}

main() {
  local word presets=() modules=()
  for word in "$@"; do
    if [[ $word == tsan || $word == asan-ubsan ]]; then
      presets+=("$word")
    elif [[ " ${MODULES[*]} " == *" $word "* ]]; then
      modules+=("$word")
    else
      die "'$word' is neither a sanitizer nor a module with tests; see --help"
    fi
  done
  if ((${#presets[@]} == 0)); then presets=(tsan asan-ubsan); fi
  if ((${#modules[@]} == 0)); then modules=("${MODULES[@]}"); fi
  "$ROOT/scripts/setup.sh" build rust run test
  for word in "${presets[@]}"; do sanitize "$word" "${modules[@]}"; done
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
