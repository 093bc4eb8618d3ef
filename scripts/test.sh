#!/usr/bin/env bash
# Runs all tests: ./scripts/test.sh [--fast]
# Installs what they need (apt, and PyPI packages into build/), builds, then runs: unit, wire,
# golden and tidy tests (ctest), a few planted bugs, the official Python SDKs against a server,
# and the parsers of untrusted input once more under address and undefined-behaviour sanitizers.
# --fast: unit tests and tidy only.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

# Modules that parse what strangers send; their unit tests run under the sanitizers too.
SANITIZED=(base text net model api)
MODEL=smollm2-135m
PLANTED=4  # other ones for each commit; about ten seconds each

# Lets through what matters of ctest's output: every 50th success, all else.
condense() {
  awk '/^ *Start +[0-9]+:/ { next }
       / Passed +[0-9.]+ sec/ { if (++passed % 50) next }
       { print; fflush() }'
}

# run_ctest PRESET ARGUMENT...
run_ctest() {
  local preset=$1
  shift
  say "testing ($preset)"
  env -C "$ROOT" ctest --preset "$preset" -j "$(nproc)" --no-tests=error "$@" \
    > >(tee "$LOGS/ctest-$preset.log" | condense) || die "tests failed ($preset)"
}

# What tests read and git does not keep: a model, and what the golden folders ask for.
fetch_data() {
  local fetch fetches
  pull "$MODEL"
  mapfile -t fetches < <(find "$ROOT/tests/golden" -name fetch.sh | sort)
  for fetch in "${fetches[@]}"; do
    step "fetching what ${fetch#"$ROOT"/} names" "fetch-$(basename "$(dirname "$fetch")")" "$fetch"
  done
}

# With that data there, a golden test that was left out is a fault of this script or of the test.
no_golden_skipped() {
  if grep -E ' golden\..*(Skipped|Not Run)' "$LOGS/ctest-release.log" >&2; then
    die "golden tests were skipped (above), though what they read was fetched"
  fi
}

main() {
  local fast=0 targets=()
  case ${1:-} in
    --fast) fast=1 ;;
    ?*) die "unknown option '$1'; see --help" ;;
  esac
  "$ROOT/scripts/setup.sh" build rust run test
  build release all
  if ((fast)); then
    run_ctest release -R '^([a-z]+\.|tidy)' -E '^(fuzz|golden|wire|clients)\.'
    return
  fi
  fetch_data
  run_ctest release
  no_golden_skipped
  step "planting $PLANTED bugs, each to be caught" mutations \
    "$ROOT/scripts/mutations.sh" --some "$PLANTED"
  step "the official Python SDKs against a server" clients "$ROOT/tests/clients/run.sh" sdk
  targets=("${SANITIZED[@]/%/_test}")
  build asan-ubsan "${targets[@]}"
  run_ctest asan-ubsan -R "^($(IFS='|' && echo "${SANITIZED[*]}"))\."
  say "all tests passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
