#!/usr/bin/env bash
# Runs seeds of the simulation that nobody has run before: ./scripts/simulate.sh [SECONDS]
# Default: 300 seconds, one process a processor. A failing seed is printed with its configuration
# and last events, and is seen again with plumb_sim --seed N (docs/simulation.md).
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

SEEDS_APART=1000000

main() {
  local seconds=${1:-300} first program processes=() logs=() failed=0 i
  [[ $seconds =~ ^[0-9]+$ ]] || die "'$seconds' is no number of seconds"
  "$ROOT/scripts/setup.sh" build rust
  build release plumb_sim
  program=$(find "$ROOT/build/release" -type f -name plumb_sim -perm -u+x | head -n 1)
  first=$(($(date +%s) * 1000))
  say "simulating for $seconds s from seed $first"
  for ((i = 0; i < $(nproc); ++i)); do
    logs+=("$LOGS/simulate-$i.log")
    "$program" --quiet --seed $((first + i * SEEDS_APART)) --runs "$SEEDS_APART" \
      --seconds "$seconds" >"${logs[i]}" 2>&1 &
    processes+=($!)
  done
  for i in "${!processes[@]}"; do
    wait "${processes[i]}" || failed=1
    cat "${logs[i]}"
  done
  ((failed == 0)) || die "a seed failed"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
