#!/usr/bin/env bash
# Plants known bugs, one at a time, and fails unless the simulation catches each:
# ./scripts/mutations.sh [NAME... | --some COUNT]    (default: every tests/sim/mutations/*.patch)
# --some: so many, which follow from the commit, so that each commit tries others.
# A bug is a source file of its own under build/mutations, compiled and linked before what
# build/release has of it. A table at the end says which seed and rule caught each. Of the run:
# MUTATION_SEEDS (default 60), MUTATION_SECONDS_MAX (120), MUTATION_BUILD (build/release).
set -euo pipefail
# shellcheck source=lib/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/build.sh
source "$ROOT/scripts/lib/build.sh"

PATCHES=$ROOT/tests/sim/mutations
FOLDER=$ROOT/build/mutations
BUILD=${MUTATION_BUILD:-$ROOT/build/release}
SEEDS=${MUTATION_SEEDS:-60}
SECONDS_MAX=${MUTATION_SECONDS_MAX:-120}

# patched_file NAME: the one file that the patch changes.
patched_file() {
  local files
  mapfile -t files < <(sed -n 's|^+++ b/||p' "$PATCHES/$1.patch")
  [[ ${#files[@]} == 1 && ${files[0]} == src/*.cc ]] || die "$1.patch: not one source file"
  echo "${files[0]}"
}

# plant NAME: the file with the bug, under $FOLDER.
plant() {
  local file
  file=$(patched_file "$1")
  mkdir -p "$FOLDER/$(dirname "$file")"
  cp "$ROOT/$file" "$FOLDER/$file"
  patch -d "$FOLDER" -p1 -s -f --no-backup-if-mismatch -r - <"$PATCHES/$1.patch"
}

# The last command that ninja runs for a target.
command_of() { ninja -C "$BUILD" -t commands "$1" | tail -n 1; }

# build_mutant NAME: $FOLDER/plumb_sim.
build_mutant() {
  local file module object compile link
  file=$(patched_file "$1")
  module=$(cut -d / -f 2 <<<"$file")
  object=CMakeFiles/plumb_$module.dir/$file.o
  compile=$(command_of "$object")
  compile=${compile//"$object"/"$FOLDER/mutant.o"}
  compile=${compile//"-c $ROOT/$file"/"-c $FOLDER/$file"}
  link=$(command_of tests/sim/plumb_sim)
  link=${link/"-o tests/sim/plumb_sim"/"-o $FOLDER/plumb_sim $FOLDER/mutant.o"}
  [[ $compile == *"$FOLDER/$file"* && $link == *"$FOLDER/mutant.o"* ]] ||
    die "cannot read the commands of $BUILD"
  rm -f "$FOLDER/plumb_sim" "$FOLDER/mutant.o"
  (cd "$BUILD" && bash -c "$compile" && bash -c "$link")
}

# run_sim PROGRAM LOG: exit status 124 when it takes too long. In a shell of its own, which says
# nothing of an abort.
run_sim() (
  exec 2>/dev/null
  timeout "$SECONDS_MAX" "$1" --quiet --runs "$SEEDS" >"$2" 2>&1
)

# The first line of a log that tells what was wrong.
reason() {
  grep -m 1 -oE 'FAILED: .*|CHECK failed.*|step [0-9]+: .*|[a-z_/]+\.(cc|h):[0-9]+.*' "$1" |
    head -n 1 | cut -c1-110 || true
}

# mutate NAME: prints a row of the table; 1 unless it was caught.
mutate() {
  local name=$1 patch=$PATCHES/$1.patch log=$FOLDER/$1.log status=0 begin=$SECONDS verdict
  plant "$name"
  if ! build_mutant "$name" >"$log" 2>&1; then
    verdict="DOES NOT BUILD|$((SECONDS - begin)) s|see ${log#"$ROOT"/}"
  else
    run_sim "$FOLDER/plumb_sim" "$log" || status=$?
    case $status in
      0) verdict="SURVIVED|$((SECONDS - begin)) s|$(head -n 1 "$patch")" ;;
      124) verdict="caught|$((SECONDS - begin)) s|hangs (no end in $SECONDS_MAX s)" ;;
      *) verdict="caught|$((SECONDS - begin)) s|$(sed -n 's/^again: .*--seed/seed/p' "$log" |
           head -n 1): $(reason "$log")" ;;
    esac
  fi
  echo "$name|$verdict"
  [[ $verdict == caught* ]]
}

all_names() {
  local patch
  for patch in "$PATCHES"/*.patch; do basename "$patch" .patch; done
}

# All of them, whichever run: a change may have moved the code that a patch is about.
all_apply() {
  local name good=1
  for name in $(all_names); do
    plant "$name" >/dev/null 2>&1 || { say "$name.patch does not apply"; good=0; }
  done
  ((good)) || die "write those patches anew against the present code"
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
  all_apply
  if [[ -z ${MUTATION_BUILD:-} ]]; then
    "$ROOT/scripts/setup.sh" build rust
    build release plumb_sim
  fi
  say "running $SEEDS seeds without a bug"
  run_sim "$BUILD/tests/sim/plumb_sim" "$FOLDER/without.log" ||
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
