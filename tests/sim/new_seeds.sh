#!/usr/bin/env bash
# Seeds that follow from the commit, so that each commit tries others and anybody can try them
# again: tests/sim/new_seeds.sh PLUMB_SIM ENGINE_TEST. The simulation for NEW_SEEDS_SECONDS (30),
# then a few workloads of the engine's property test. Both are printed with what runs them again.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# The first 7 digits of the commit's name as a number; outside of a repository 1.
commit_number() {
  local name
  name=$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null) || name=1
  echo $((16#${name:0:7}))
}

main() {
  local sim=$1 engine_test=$2 number first property
  number=$(commit_number)
  first=$((1000000 + number * 1000))
  property=$((1 + number % 99999))
  echo "simulation from seed $first (again: plumb_sim --seed N)"
  "$sim" --quiet --seed "$first" --runs 1000000 --seconds "${NEW_SEEDS_SECONDS:-30}"
  echo "again: engine_test --gtest_filter='NewSeeds.*' --gtest_random_seed=$property"
  "$engine_test" --gtest_brief=1 --gtest_filter='NewSeeds.*' --gtest_random_seed="$property"
}

main "$@"
