// tests/browser/unit/cuts.js
// Ways to cut a text into pieces, for tests that nothing depends on how a text was cut.

// With at most `cuts` cuts, everywhere.
export function* everyCut(text, cuts) {
  yield [text];
  if (cuts === 0) return;
  for (let at = 0; at <= text.length; ++at) {
    for (const rest of everyCut(text.slice(at), cuts - 1)) yield [text.slice(0, at), ...rest];
  }
}

// `count` ways, the same on every run.
export function* randomCuts(text, count, seed = 1) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (let i = 0; i < count; ++i) {
    const density = next();
    const pieces = [""];
    for (const unit of text.split("")) {
      if (next() < density) pieces.push("");
      pieces[pieces.length - 1] += unit;
    }
    yield pieces;
  }
}
