#!/usr/bin/env bash
# Builds the container image plumb:latest from deploy/Dockerfile: deploy/build_image.sh [--check]
# By docker where a daemon answers, else by buildah. Where no registry of images is reached, buildah
# builds on a base that is made here by debootstrap. --check also runs the image: as its user, until
# /ready answers, and one question.
set -euo pipefail
# shellcheck source=../scripts/lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib/common.sh"
# shellcheck source=../scripts/lib/build.sh
source "$ROOT/scripts/lib/build.sh"
# shellcheck source=lib/rootfs.sh
source "$ROOT/deploy/lib/rootfs.sh"

BASE=debian:12-slim
LOCAL_BASE=localhost/plumb-base:12
IMAGE=plumb:latest
READY_SECONDS_MAX=120
PULL_SECONDS_MAX=60
check_pid=
check_container=

have_docker() {
  type -P docker >/dev/null && docker info >/dev/null 2>&1
}

# Overlay needs a kernel that lets us mount; vfs copies, and always works.
buildah_here() {
  buildah --root "$ROOT/build/images" --runroot "$ROOT/build/images-run" --storage-driver vfs "$@"
}

# Names the base to build on, and makes it when there is none.
make_base() {
  local rootfs container
  if buildah_here inspect "$LOCAL_BASE" >/dev/null 2>&1; then
    base=$LOCAL_BASE
    return
  fi
  if timeout "$PULL_SECONDS_MAX" buildah --root "$ROOT/build/images" \
    --runroot "$ROOT/build/images-run" --storage-driver vfs pull -q "$BASE" >/dev/null 2>&1; then
    base=$BASE
    return
  fi
  say "no registry of images is reached: making a base by debootstrap"
  rootfs=$(mktemp -d)
  make_rootfs "$rootfs/root"
  tar -C "$rootfs/root" -cf "$rootfs/root.tar" .
  container=$(buildah_here from scratch)
  buildah_here add -q "$container" "$rootfs/root.tar" / >/dev/null
  buildah_here config --cmd bash "$container"
  step "keeping the base" image-base buildah_here commit -q "$container" "$LOCAL_BASE"
  buildah_here rm "$container" >/dev/null
  rm -rf "$rootfs"
  base=$LOCAL_BASE
}

build_with_buildah() {
  local base=
  [[ -x $(type -P buildah) ]] || die "neither a docker daemon nor buildah: apt-get install buildah"
  make_base
  step "building $IMAGE with buildah on $base" image buildah_here bud --isolation chroot \
    --format docker --layers=false --build-arg "BASE=$base" -f "$ROOT/deploy/Dockerfile" \
    -t "$IMAGE" "$ROOT"
}

clean_up() {
  stop_heartbeat
  if [[ -n $check_pid ]]; then end "$check_pid"; fi
  if [[ -n $check_container ]]; then buildah_here rm "$check_container" >/dev/null || true; fi
}

# Runs the image as buildah can: its own user, its own files, this machine's network.
check_with_buildah() {
  local port key=a-key-for-one-check log=$LOGS/image-check.log
  port=$(free_port)
  check_container=$(buildah_here from "$IMAGE")
  say "running $IMAGE on port $port"
  buildah_here run --isolation chroot --env "PLUMB_PORT=$port" --env "PLUMB_API_KEY=$key" \
    "$check_container" -- plumb-entrypoint serve >"$log" 2>&1 </dev/null &
  check_pid=$!
  wait_ready "$port" "$check_pid" "$READY_SECONDS_MAX" || {
    tail -n "$FAILED_LOG_LINES" "$log" >&2
    die "the image did not become ready"
  }
  buildah_here run --isolation chroot "$check_container" -- id -un | grep -qx plumb ||
    die "the image does not run as its own user"
  curl -fs --max-time 60 "http://127.0.0.1:$port/v1/chat/completions" \
    -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
    -d '{"model": "smollm2-135m", "max_tokens": 16,
         "messages": [{"role": "user", "content": "Say hello."}]}' || die "no answer"
  echo
}

check_with_docker() {
  local id
  id=$(docker run -d --rm -e PLUMB_API_KEY=a-key-for-one-check -p 127.0.0.1::8000 "$IMAGE")
  step "waiting until $IMAGE is healthy" image-check timeout "$READY_SECONDS_MAX" bash -c \
    "until [[ \$(docker inspect -f '{{.State.Health.Status}}' $id) == healthy ]]; do sleep 1; done"
  docker stop "$id" >/dev/null
}

main() {
  local check=0
  case ${1:-} in
    --check) check=1 ;;
    ?*) die "unknown option '$1'; see --help" ;;
  esac
  trap clean_up EXIT
  if have_docker; then
    step "building $IMAGE with docker" image docker build -f "$ROOT/deploy/Dockerfile" -t "$IMAGE" \
      "$ROOT"
    if ((check)); then check_with_docker; fi
  else
    build_with_buildah
    if ((check)); then check_with_buildah; fi
  fi
  say "$IMAGE is built"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
