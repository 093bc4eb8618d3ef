#!/usr/bin/env bash
# Runs each fuzz target for a while: ./scripts/fuzz.sh [SECONDS] [TARGET...]
# Default: 300 seconds each, all of tests/fuzz/*_fuzz.cc. Starts from tests/fuzz/corpus/<target>;
# new inputs stay in build/fuzz/corpus/<target>, a finding in build/fuzz/findings/. Exit status 1: a
# finding.
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

RSS_MIB_MAX=4096
INPUT_SECONDS_MAX=10
INPUT_BYTES_MAX=65536

all_targets() {
  local file
  for file in "$ROOT"/tests/fuzz/*_fuzz.cc; do basename "$file" _fuzz.cc; done
}

# fuzz TARGET SECONDS
fuzz() {
  local corpus=$ROOT/build/fuzz/corpus/$1 findings=$ROOT/build/fuzz/findings
  mkdir -p "$corpus" "$findings"
  step "fuzzing $1 for $2 s" "fuzz-$1" \
    "$(find "$ROOT/build/fuzz" -type f -name "$1_fuzz" -perm -u+x | head -n 1)" \
    "$corpus" "$ROOT/tests/fuzz/corpus/$1" -max_total_time="$2" -timeout="$INPUT_SECONDS_MAX" \
    -rss_limit_mb="$RSS_MIB_MAX" -max_len="$INPUT_BYTES_MAX" -print_final_stats=1 \
    -artifact_prefix="$findings/$1-"
  grep -E 'stat::number_of_executed_units|stat::new_units_added' "$LOGS/fuzz-$1.log" >&2 || true
}

main() {
  local seconds=300 targets=() target
  if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
  fi
  targets=("$@")
  if ((${#targets[@]} == 0)); then mapfile -t targets < <(all_targets); fi
  for target in "${targets[@]}"; do
    [[ -f $ROOT/tests/fuzz/${target}_fuzz.cc ]] ||
      die "no target '$target'; there are: $(all_targets | xargs)"
  done
  "$ROOT/scripts/setup.sh" build rust fuzz
  build fuzz "${targets[@]/%/_fuzz}"
  for target in "${targets[@]}"; do fuzz "$target" "$seconds"; done
  say "no finding in ${#targets[@]} targets of $seconds s each"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
