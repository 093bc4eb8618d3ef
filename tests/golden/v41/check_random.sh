#!/usr/bin/env bash
# Generates a random DeepSeek-V4.1 checkpoint, runs it and compares the logits with the reference:
# f32 on one that is chaotic, kvq on one that is not (MANIFEST.md says why).
#   check_random.sh SEED [a|b] [TOKENS]     shape a is the default; 160 tokens
# Variables: PLUMB_BUILD, the build folder (build/release); PLUMB_VENV, a Python environment with
# numpy and ml_dtypes, made by pip if absent (build/venv-v41). Not part of test.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=${PLUMB_BUILD:-$root/build/release}
venv=${PLUMB_VENV:-$root/build/venv-v41}

case "${1:-}" in
  -h|--help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
  ''|*[!0-9]*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
seed=$1
shape=${2:-a}
tokens=${3:-160}
if [[ $shape != a && $shape != b ]]; then
  echo "check_random.sh: shape \"$shape\" is neither a nor b" >&2
  exit 2
fi
if [[ ! -x $build/plumb ]]; then
  echo "check_random.sh: $build/plumb is missing; run: cmake --build $build --target plumb" >&2
  exit 2
fi
if [[ ! -x $venv/bin/python ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet numpy==2.4.6 ml_dtypes==0.6.0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
python() { (cd "$here" && PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" "$@"); }
python make_tiny.py "$work/wild" "$seed" "$shape" >/dev/null
python make_tiny.py "$work/tame" "$seed" "$shape" damped >/dev/null
python check_logits.py ids "$work/wild" "$tokens" "$seed" >"$work/ids.json"

failed=0
check() {  # check MODE CHECKPOINT
  "$build/plumb" model logits --model "$work/$2" --ids "$work/ids.json" --numerics "$1" \
    --out "$work/$1.npy" >/dev/null 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
  printf 'seed %s, shape %s, ' "$seed" "$shape"
  python check_logits.py compare "$work/$2" "$1" "$work/ids.json" "$work/$1.npy" || failed=1
}
check f32 wild
check kvq tame
exit "$failed"
