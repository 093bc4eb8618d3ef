#!/usr/bin/env bash
# Plays the newcomer: deploy/check_chroot.sh [--keep] [STEP...]
# Makes a Debian 12 chroot with git and bash only, clones the last commit into it, and runs the
# README's commands there as root: demo.sh, serve.sh a second time (up within 5 s), test.sh cold and
# warm. Steps: demo serve test warm (default: all). --keep leaves the folder. Prints how long each
# took. Needs root.
set -euo pipefail
# shellcheck source=../scripts/lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib/common.sh"
# shellcheck source=../scripts/lib/build.sh
source "$ROOT/scripts/lib/build.sh"
# shellcheck source=lib/rootfs.sh
source "$ROOT/deploy/lib/rootfs.sh"

SERVE_SECONDS_MAX=5
TEST_COLD_SECONDS_MAX=$((35 * 60))
TEST_WARM_SECONDS_MAX=$((15 * 60))
CHECKOUT=/srv/plumb
keep=0
folder=
server=

clean_up() {
  stop_heartbeat
  if [[ -n $server ]]; then end "$server"; fi
  if [[ -z $folder ]]; then return; fi
  umount -l "$folder/root/proc" "$folder/root/dev" 2>/dev/null || true
  if ((keep)); then say "kept: $folder/root"; else rm -rf --one-file-system "$folder"; fi
}

# Runs a command in the chroot's checkout, with nothing of this shell's environment but the way to
# the registries.
inside() {
  local variables
  mapfile -d '' -t variables < <(carried_variables)
  # shellcheck disable=SC2016  # expanded inside
  exec chroot "$folder/root" env -i "${variables[@]}" LANG=C.UTF-8 TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    bash -c 'export HOME=~root && cd "$1" && shift && exec "$@"' bash "$CHECKOUT" "$@"
}

# timed LABEL SECONDS_MAX COMMAND...
timed() {
  local label=$1 seconds_max=$2 start=$SECONDS
  shift 2
  say "== $label"
  (inside "$@") || die "$label: failed with status $?"
  say "== $label: $((SECONDS - start)) s (at most $seconds_max)"
  ((SECONDS - start <= seconds_max)) || die "$label: too slow"
}

second_serve() {
  local port start=${EPOCHREALTIME/./} elapsed_ms
  port=$(free_port)
  (inside ./scripts/serve.sh --port "$port") &
  server=$!
  wait_ready "$port" "$server" 60 || die "serve.sh did not become ready"
  elapsed_ms=$(((${EPOCHREALTIME/./} - start) / 1000))
  kill -TERM "$server"
  wait "$server" || die "serve.sh ended with status $? after SIGTERM"
  server=
  say "== serve.sh, second run: ready after $elapsed_ms ms (at most ${SERVE_SECONDS_MAX}000)"
  ((elapsed_ms <= SERVE_SECONDS_MAX * 1000)) || die "serve.sh: too slow"
}

main() {
  local steps=() name
  if [[ ${1:-} == --keep ]]; then
    keep=1
    shift
  fi
  steps=("$@")
  if ((${#steps[@]} == 0)); then steps=(demo serve test warm); fi
  ((EUID == 0)) || die "a chroot needs root"
  trap clean_up EXIT
  folder=$(mktemp -d)
  make_rootfs "$folder/root" git,ca-certificates
  mount -t proc proc "$folder/root/proc"
  mount --bind /dev "$folder/root/dev"
  git clone -q "$ROOT" "$folder/root$CHECKOUT"
  for name in "${steps[@]}"; do
    case $name in
      demo) timed "demo.sh" "$TEST_COLD_SECONDS_MAX" ./scripts/demo.sh ;;
      serve) second_serve ;;
      test) timed "test.sh, cold" "$TEST_COLD_SECONDS_MAX" ./scripts/test.sh ;;
      warm) timed "test.sh, warm" "$TEST_WARM_SECONDS_MAX" ./scripts/test.sh ;;
      *) die "no step '$name'; see --help" ;;
    esac
  done
  say "a newcomer succeeds"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
