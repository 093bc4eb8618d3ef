#!/usr/bin/env bash
# Builds plumb and serves a model: ./scripts/serve.sh [OPTION...]
# Installs what is missing (apt), builds, fetches the model once, then serves an OpenAI-style
# endpoint on 127.0.0.1:8000 until Ctrl-C. Options are those of `plumb serve`: --model NAME|FILE
# (default smollm2-135m), --port P, --threads N, ...; all: build/release/plumb serve --help
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

# The model named by the options or the environment; empty when a configuration file may name it.
model_of() {
  local model=${PLUMB_MODEL:-} configured=0
  while (($# > 0)); do
    case $1 in
      --model=* | -m=*) model=${1#*=} ;;
      --model | -m) model=${2:-} ;;
      --config | --config=*) configured=1 ;;
    esac
    shift
  done
  if [[ -z $model && $configured == 0 ]]; then model=smollm2-135m; fi
  echo "$model"
}

main() {
  local model
  model=$(model_of "$@")
  "$ROOT/scripts/setup.sh" build rust run
  build release plumb
  if [[ -n $model ]]; then pull "$model"; fi
  exec "$PLUMB" serve "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
