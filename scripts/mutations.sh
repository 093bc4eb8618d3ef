#!/usr/bin/env bash
# Plants known bugs, one at a time, and fails unless the simulation catches each:
# ./scripts/mutations.sh [NAME... | --some COUNT]    (default: every tests/sim/mutations/*.patch)
# --some: so many, which follow from the commit, so that each commit tries others.
# In a copy of the tree under build/mutations. A table at the end says by which seed and rule each
# was caught. Options of the run: MUTATION_SEEDS (default 60), MUTATION_SECONDS_MAX (120).
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

PATCHES=$ROOT/tests/sim/mutations
FOLDER=$ROOT/build/mutations
TREE=$FOLDER/tree
BUILD=$FOLDER/build
SEEDS=${MUTATION_SEEDS:-60}
SECONDS_MAX=${MUTATION_SECONDS_MAX:-120}
export CCACHE_BASEDIR=$TREE

# The files as they lie here, committed or not; those that did not change keep their time.
copy_tree() {
  local file
  mkdir -p "$TREE"
  git -C "$ROOT" ls-files --cached --others --exclude-standard |
    while IFS= read -r file; do [[ ! -f $ROOT/$file ]] || echo "$file"; done |
    LC_ALL=C sort -u >"$FOLDER/files"
  while IFS= read -r file; do
    if cmp -s "$ROOT/$file" "$TREE/$file"; then continue; fi
    mkdir -p "$TREE/$(dirname "$file")"
    cp "$ROOT/$file" "$TREE/$file"  # newer than what was built of it
  done <"$FOLDER/files"
  (cd "$TREE" && find . -type f -printf '%P\n' | LC_ALL=C sort) |
    LC_ALL=C comm -13 "$FOLDER/files" - |
    while IFS= read -r file; do rm -f "${TREE:?}/$file"; done
}

# The Rust library is the one that is built already: cargo would build it anew for another folder.
configure() {
  cmake -G Ninja -S "$TREE" -B "$BUILD" -DCMAKE_BUILD_TYPE=Release -DCARGO="$(command -v true)" \
    -DPLUMB_RUST_TARGET="${PLUMB_RUST_TARGET:-$ROOT/build/rust}"
}

build_sim() { ninja -C "$BUILD" -j "$(jobs_count)" plumb_sim; }

# run_sim LOG: exit status 124 when it takes too long.
run_sim() {
  local program
  program=$(find "$BUILD" -type f -name plumb_sim -perm -u+x | head -n 1)
  timeout "$SECONDS_MAX" "$program" --quiet --runs "$SEEDS" >"$1" 2>&1
}

# The first line of a log that tells what was wrong.
reason() {
  grep -m 1 -oE 'FAILED: .*|CHECK failed.*|step [0-9]+: .*|[a-z_/]+\.(cc|h):[0-9]+.*' "$1" |
    head -n 1 | cut -c1-110 || true
}

# mutate NAME: prints a row of the table; 1 unless it was caught.
mutate() {
  local name=$1 patch=$PATCHES/$1.patch log=$FOLDER/$1.log status=0 begin=$SECONDS verdict
  if ! patch -d "$TREE" -p1 --dry-run -s <"$patch" >"$log" 2>&1; then
    echo "$name|DOES NOT APPLY|-|write it anew against the present code: $(head -n 1 "$log")"
    return 1
  fi
  patch -d "$TREE" -p1 -s --no-backup-if-mismatch <"$patch"
  if ! build_sim >"$log" 2>&1; then
    verdict="DOES NOT BUILD|$((SECONDS - begin)) s|see ${log#"$ROOT"/}"
  else
    run_sim "$log" || status=$?
    case $status in
      0) verdict="SURVIVED|$((SECONDS - begin)) s|$(head -n 1 "$patch")" ;;
      124) verdict="caught|$((SECONDS - begin)) s|hangs (no end in $SECONDS_MAX s)" ;;
      *) verdict="caught|$((SECONDS - begin)) s|$(sed -n 's/^again: .*--seed/seed/p' "$log" |
           head -n 1): $(reason "$log")" ;;
    esac
  fi
  patch -d "$TREE" -p1 -s -R --no-backup-if-mismatch <"$patch"
  echo "$name|$verdict"
  [[ $verdict == caught* ]]
}

all_names() {
  local patch
  for patch in "$PATCHES"/*.patch; do basename "$patch" .patch; done
}

# some_names COUNT: from the place that the commit says, around the end.
some_names() {
  local names count=$1 number first i
  mapfile -t names < <(all_names)
  number=$(git -C "$ROOT" rev-parse --short=7 HEAD 2>/dev/null) || number=0
  first=$((16#${number:0:7} % ${#names[@]}))
  for ((i = 0; i < count && i < ${#names[@]}; ++i)); do
    echo "${names[(first + i * 7) % ${#names[@]}]}"
  done
}

main() {
  local names=("$@") name survivors=0 table=$FOLDER/table
  if ((${#names[@]} == 0)); then
    mapfile -t names < <(all_names)
  elif [[ ${names[0]} == --some ]]; then
    [[ ${names[1]:-} =~ ^[1-9][0-9]*$ ]] || die "--some takes a number"
    mapfile -t names < <(some_names "${names[1]}")
  fi
  for name in "${names[@]}"; do
    [[ -f $PATCHES/$name.patch ]] || die "no mutation '$name' in ${PATCHES#"$ROOT"/}"
  done
  mkdir -p "$FOLDER"
  if [[ -z ${PLUMB_RUST_TARGET:-} ]]; then
    "$ROOT/scripts/setup.sh" build rust
    build release plumb_rust_build
  fi
  copy_tree
  step "configuring" mutations-configure configure
  step "building the simulation without a bug" mutations-build build_sim
  say "running $SEEDS seeds without a bug"
  run_sim "$FOLDER/without.log" ||
    { tail -n 40 "$FOLDER/without.log" >&2; die "the simulation fails without a planted bug"; }
  : >"$table"
  for name in "${names[@]}"; do
    mutate "$name" >>"$table" || survivors=$((survivors + 1))
    tail -n 1 "$table" | tr '|' ' ' >&2
  done
  echo
  { echo "bug|verdict|time|by"; cat "$table"; } | column -t -s '|'
  ((survivors == 0)) || die "$survivors of ${#names[@]} planted bugs were not caught"
  say "all ${#names[@]} planted bugs were caught"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then show_help; fi
main "$@"
