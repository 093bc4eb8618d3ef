#!/usr/bin/env bash
# An installed plumb brings v41-mini along, wherever it is moved to: installs a build into a scratch
# folder, moves that, and asks the model there.
#   installed.sh BUILD       a build folder with plumb in it
set -euo pipefail

build=$(cd "${1:?give the build folder}" && pwd)
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PLUMB_CACHE=$work/cache

fail() {
  echo "installed.sh: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$work/first" >"$work/log" || fail "$(cat "$work/log")"
mv "$work/first" "$work/prefix"
plumb=$work/prefix/bin/plumb
model=$work/prefix/share/plumb/models/v41-mini

if grep -qaF "$root/tests" "$plumb"; then fail "a path of the source tree is in the program"; fi
"$plumb" model pull v41-mini >"$work/pull"
grep -qxF "v41-mini comes with plumb, at $model" "$work/pull" || fail "$(cat "$work/pull")"
"$plumb" model list >"$work/list"
grep -q '^v41-mini .* yes .*(comes with plumb)$' "$work/list" || fail "$(cat "$work/list")"
"$plumb" model verify v41-mini >/dev/null
"$plumb" model inspect v41-mini >"$work/inspect"
grep -q '^runs here *yes' "$work/inspect" || fail "$(cat "$work/inspect")"

cat >"$work/in.jsonl" <<'LINE'
{"messages": [{"role": "user", "content": "Compute 714 + 244."}], "temperature": 0}
LINE
"$plumb" generate --model v41-mini --input "$work/in.jsonl" --output "$work/out.jsonl" 2>"$work/log"
python3 - "$work/out.jsonl" <<'PYTHON' || fail "a wrong answer: $(cat "$work/out.jsonl")"
import json, sys
answer = json.loads(open(sys.argv[1], encoding="utf-8").read())
assert answer["text"] == "958", answer
assert answer["reasoning_content"].endswith("So 714+244=958."), answer
assert answer["finish_reason"] == "stop", answer
PYTHON

# An option that could have no effect is refused.
! "$plumb" chat --model v41-mini --tool-format hermes --once x >/dev/null 2>"$work/log" ||
  fail "took a tool format that it does not use"
grep -qF "tool-format" "$work/log" || fail "$(cat "$work/log")"

# Other bytes under that name are another model.
printf '\n' >>"$model/generation_config.json"
! "$plumb" model verify v41-mini >/dev/null 2>"$work/log" || fail "verify took other bytes"
grep -qF "install plumb again" "$work/log" || fail "$(cat "$work/log")"
mv "$model" "$work/elsewhere"
! "$plumb" chat --model v41-mini --once x >/dev/null 2>"$work/log" || fail "no model, no error"
grep -qF "comes with plumb, but is not at" "$work/log" || fail "$(cat "$work/log")"
