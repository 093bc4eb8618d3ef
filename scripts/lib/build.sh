# scripts/lib/build.sh
# Configures and builds a preset, gets a model, and waits for a server: the steps that serve.sh,
# demo.sh and test.sh share. To be sourced after common.sh.
# shellcheck shell=bash

# Another checkout of the same source finds in ccache what this one compiled.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1

PLUMB=$ROOT/build/release/plumb
KIB_PER_JOB=$((1500 * 1024))  # what a translation unit with Beast in it takes

# Compile jobs: one a processor, fewer where memory is short.
jobs_count() {
  local processors memory
  processors=$(nproc)
  memory=$(($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) / KIB_PER_JOB))
  echo $((memory < 1 ? 1 : memory < processors ? memory : processors))
}

# build PRESET TARGET...
build() {
  local preset=$1 folder=$ROOT/build/$1
  shift
  # A folder that came along with a copied checkout points at the original.
  if [[ -f $folder/CMakeCache.txt ]] &&
     ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$ROOT" "$folder/CMakeCache.txt"; then
    say "build/$preset was made for another folder: building anew"
    rm -rf "$folder"
  fi
  if [[ ! -f $folder/build.ninja || $ROOT/CMakePresets.json -nt $folder/build.ninja ]]; then
    step "configuring ($preset)" "configure-$preset" \
      env -C "$ROOT" cmake --preset "$preset"
  fi
  step "building ($preset)" "build-$preset" \
    env NINJA_STATUS="[%f/%t] " ninja -C "$folder" -j "$(jobs_count)" "$@"
}

# pull MODEL: a file or folder is taken as it is; a name is fetched, once.
pull() {
  if [[ -e $1 ]]; then return; fi
  say "model $1"
  "$PLUMB" model pull "$1" >&2
}

# wait_ready PORT PID SECONDS: until /ready answers 200; fails when the process ends before.
wait_ready() {
  local deadline=$((SECONDS + $3))
  until curl -fs -o /dev/null --max-time 2 "http://127.0.0.1:$1/ready"; do
    kill -0 "$2" 2>/dev/null || return 1
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

# end PID: asks a child of this shell to stop, and waits until it has.
end() {
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

free_port() {
  python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
