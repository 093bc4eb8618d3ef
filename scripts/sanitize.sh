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
# Those whose tests compile grammars in threads of the Rust library. It is not instrumented, so that
# what these threads hand each other through Rust's channels would be reported where it passes
# memcpy and free; accesses inside those two are not looked at there.
GRAMMAR_MODULES=" text api cli "

# run_tests PRESET TSAN_OPTIONS MODULE...
run_tests() {
  local modules=("${@:3}") log=$LOGS/sanitize-$1.log pattern
  if ((${#modules[@]} == 0)); then return; fi
  pattern="^($(IFS='|' && echo "${modules[*]}"))\."
  say "testing ($1): ${modules[*]}"
  TSAN_OPTIONS=halt_on_error=1:$2 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    env -C "$ROOT" ctest --preset "$1" -j "$(nproc)" --no-tests=error --timeout 900 \
    -R "$pattern" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; die "tests failed ($1)"; }
  grep 'tests passed' "$log"
}

# sanitize PRESET MODULE...
sanitize() {
  local module grammar=() other=() modules=("${@:2}")
  build "$1" "${modules[@]/%/_test}"
  for module in "${modules[@]}"; do
    if [[ $GRAMMAR_MODULES == *" $module "* ]]; then
      grammar+=("$module")
    else
      other+=("$module")
    fi
  done
  run_tests "$1" "" "${other[@]}"
  run_tests "$1" ignore_interceptors_accesses=1 "${grammar[@]}"
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
