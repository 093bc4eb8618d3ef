#!/usr/bin/env bash
# JSON Schema to the letter: ./eval/quality/json_schema_suite.sh [--list] [--csv FILE] [--suite DIR]
# Runs the whole JSON-Schema-Test-Suite (2020-12, from the source package of PyPI jsonschema)
# through the grammar compiler, token by token over DeepSeek's vocabulary: each of its groups must
# be refused by the name of a keyword, or take every valid instance and no invalid one. Prints a
# table of counts; --list also what was refused and why. Fails when a group is wrong or fewer than
# 160 are enforced. Variables: PLUMB_BUILD (a build folder with schema_suite), PLUMB_TOKENIZER_JSON.
set -euo pipefail
# shellcheck source=../speed/lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../speed/lib/setup.sh"
# shellcheck source=../speed/lib/tokenizer.sh
source "$SPEED_LIB/tokenizer.sh"

PACKAGE=jsonschema==4.26.0
SHA256=0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326

# Sets SUITE, downloaded once.
find_suite() {
  local folder=$SPEED_CACHE/jsonschema
  SUITE=$folder/json/tests/draft2020-12
  if [[ -d $SUITE ]]; then return; fi
  get_package source "$PACKAGE" "$SHA256" "$folder"
  tar -xzf "$folder"/jsonschema-*.tar.gz -C "$folder" --strip-components 1
}

main() {
  local arguments=()
  SUITE=
  while (($# > 0)); do
    case $1 in
      --suite) SUITE=$2; shift 2 ;;
      --csv) arguments+=(--csv "$2"); shift 2 ;;
      *) arguments+=("$1"); shift ;;
    esac
  done
  find_program schema_suite
  find_tokenizer
  if [[ -z $SUITE ]]; then find_suite; fi
  exec "$PROGRAM" --suite "$SUITE" --tokenizer "$TOKENIZER" --least-enforced 160 "${arguments[@]}"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
