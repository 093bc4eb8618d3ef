#!/usr/bin/env bash
# What grammars cost over a vocabulary of 129k tokens: ./eval/speed/grammar_masks.sh [--csv FILE]
# [--rounds N] [--hostile]
# Time to compile, of the first mask and of each further one; one line a grammar, RATIO <what> <ms>
# <goal>. Made for a quiet core. --hostile: small grammars made to be slow, how they end, and their
# longest step (5 ms of processor time is the limit, seen every 2 ms).
# Variables: PLUMB_BUILD (a build folder with grammar_masks), PLUMB_TOKENIZER_JSON.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"
# shellcheck source=lib/tokenizer.sh
source "$SPEED_LIB/tokenizer.sh"

# What the table was taken with, as comments.
print_head() {
  echo "# date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "# plumb: $(git -C "$ROOT" describe --always --dirty 2>/dev/null || echo unknown)"
  echo "# cpu: $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
  echo "# load before: $(cut -d' ' -f1 /proc/loadavg)"
  echo "# tokenizer: $DEEPSEEK_TOKENIZER"
}

main() {
  local out csv='' head arguments=()
  while (($# > 0)); do
    case $1 in
      --csv) csv=$2; shift 2 ;;
      *) arguments+=("$1"); shift ;;
    esac
  done
  find_program grammar_masks
  find_tokenizer
  head=$(print_head)
  out=$("$PROGRAM" --tokenizer "$TOKENIZER" "${arguments[@]}")
  echo "$out"
  if [[ -n $csv ]]; then printf '%s\n%s\n' "$head" "$out" >"$csv"; fi
  awk -F, '$1 == "all" && $2 == "" { printf "RATIO hostile_step_max_ms %.2f 8\n", $4; next }
           $1 == "all" { printf "RATIO compile_and_first_mask_p50_ms %.2f 5\n", $3 + $4 / 1000
                         printf "RATIO mask_p99_ms %.3f 0.3\n", $8 / 1000 }' <<<"$out"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
