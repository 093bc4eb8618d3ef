#!/usr/bin/env bash
# What the gateway takes, without a model behind it: ./eval/speed/gateway.sh [--rounds N] [--quick]
# [--csv FILE] [--only NAME,...]
# The whole service on one core, its generator a script that answers at once; the load generator on
# another. Requests a second (short ones; 200 kB of turns of which 95 % were sent before; 200 kB of
# which nothing was), latencies at half of the goals, and the memory of 5,000 silent streams. Prints
# RATIO <what> <value> <goal>; see docs/speed.md.
set -euo pipefail
# shellcheck source=lib/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/setup.sh"

# Sets GATEWAY_BIN: the folder of gateway_server and gateway_load, of PLUMB_GATEWAY_BIN, else built.
find_gateway() {
  GATEWAY_BIN=${PLUMB_GATEWAY_BIN:-$ROOT/build/release/eval/speed/gateway}
  if [[ -z ${PLUMB_GATEWAY_BIN:-} ]]; then
    "$ROOT/scripts/setup.sh" build rust run
    build release gateway_server gateway_load
  fi
  [[ -x $GATEWAY_BIN/gateway_server ]] || die "no gateway_server in '$GATEWAY_BIN'"
  export GATEWAY_BIN
}

main() {
  find_plumb
  find_models small
  find_gateway
  # Each stream is an open file on either side.
  ulimit -n 16384 2>/dev/null || die "16384 open files are needed: ulimit -n 16384"
  export GATEWAY_TEXTS=$ROOT
  compare gateway.py "$@"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
