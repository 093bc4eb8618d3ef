// tests/browser/unit/markdown.test.js
// The Markdown that the page shows: what each mark makes, that text which grows reads like text
// that is whole, and that hostile text costs no more than its length.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBlocks, parseInlines } from "../../../web/markdown.js";
import { randomCuts } from "./cuts.js";

const text = (value) => ({ kind: "text", text: value });
const marked = (kind) => (value) => ({ kind, text: value });
const code = marked("code");
const bold = marked("bold");
const emphasis = marked("emphasis");

const INLINES = [
  ["plain", [text("plain")]],
  ["a **b** c", [text("a "), bold("b"), text(" c")]],
  ["an *idea*, two", [text("an "), emphasis("idea"), text(", two")]],
  ["2*3*4 and a ** b ** c", [text("2*3*4 and a ** b ** c")]],
  ["`x` and ``y`z``", [code("x"), text(" and "), code("y`z")]],
  ["`` `a` ``", [code("`a`")]],
  ["`**not bold**`", [code("**not bold**")]],
  ["**a `b", [text("**a `b")]],
  ["**two *signs* here**", [bold("two *signs* here")]],
  ["****", [text("****")]],
  ["***x***", [text("***x***")]],
  ["**하늘(sky)**은 *매우* 넓다",
    [bold("하늘(sky)"), text("은 "), emphasis("매우"), text(" 넓다")]],
  ["그것은**중요**합니다", [text("그것은"), bold("중요"), text("합니다")]],
  ["2**3**4", [text("2**3**4")]],
  ["<b>&amp;</b>", [text("<b>&amp;</b>")]],
  ["", []],
];
for (const [source, expected] of INLINES) {
  test(`inline ${JSON.stringify(source)}`, () => {
    assert.deepEqual(parseInlines(source), expected);
  });
}

// Without positions, and inlines as short as they can be.
function outline(source) {
  const flat = (inlines) => inlines.map((inline) => inline.text).join("|");
  return parseBlocks(source).map((block) => {
    if (block.kind === "code") return ["code", block.language, block.text, block.closed];
    if (block.kind === "rule") return ["rule"];
    if (block.kind === "heading") return ["heading", block.level, flat(block.inlines)];
    if (block.kind === "text") return ["text", flat(block.inlines)];
    const sign = (item) => (item.ordered ? `${item.number}.` : "-");
    const show = (item) => `${item.depth}${sign(item)}${flat(item.inlines)}`;
    return ["list", ...block.items.map(show)];
  });
}

const BLOCKS = [
  ["one\ntwo\n\nthree", [["text", "one\ntwo"], ["text", "three"]]],
  ["# A\n### B\n#no", [["heading", 1, "A"], ["heading", 3, "B"], ["text", "#no"]]],
  ["```js\nlet a;\n\n  b\n```\nend", [["code", "js", "let a;\n\n  b", true], ["text", "end"]]],
  ["```\nopen", [["code", "", "open", false]]],
  ["~~~c x\n```\n~~~~", [["code", "c", "```", true]]],
  ["````\n```\n````", [["code", "", "```", true]]],
  ["``` a`b\nno", [["text", "``` a`b\nno"]]],
  ["  ```\n  x\n y\n  ```", [["code", "", "x\ny", true]]],
  ["text\n```\nx\n```", [["text", "text"], ["code", "", "x", true]]],
  ["- a\n- b\n\n- c", [["list", "0-a", "0-b", "0-c"]]],
  ["1. a\n2) b", [["list", "01.a", "02.b"]]],
  ["3. a\n   more\n\nnot more", [["list", "03.a\nmore"], ["text", "not more"]]],
  ["- a\n  - b\n    - c\n- d", [["list", "0-a", "1-b", "2-c", "0-d"]]],
  ["1. a\n   - b\n2. c", [["list", "01.a", "1-b", "02.c"]]],
  ["- a\n```\nx\n```", [["list", "0-a"], ["code", "", "x", true]]],
  ["-a\n*b*", [["text", "-a\n|b"]]],
  ["a\n\n---\n\n* * *", [["text", "a"], ["rule"], ["rule"]]],
  ["a\r\n\r\n- b\r\n", [["text", "a"], ["list", "0-b"]]],
  ["\n\n", []],
];
for (const [source, expected] of BLOCKS) {
  test(`blocks of ${JSON.stringify(source)}`, () => assert.deepEqual(outline(source), expected));
}

test("text that grows is read from the last block but one", () => {
  const source = BLOCKS.map(([block]) => block).join("\n\n");
  for (const pieces of randomCuts(source, 300)) {
    let whole = "";
    let blocks = [];
    for (const piece of pieces) {
      whole += piece;
      const kept = Math.max(0, blocks.length - 2);
      blocks = [...blocks.slice(0, kept), ...parseBlocks(whole, blocks[kept]?.start ?? 0)];
    }
    assert.deepEqual(blocks, parseBlocks(source));
  }
});

test("every character of the source is in one block at most, in order", () => {
  let end = 0;
  for (const block of parseBlocks(BLOCKS.map(([source]) => source).join("\n\n"))) {
    assert.ok(block.start >= end && block.end > block.start, JSON.stringify(block));
    end = block.end;
  }
});

// Reading that took the square of the length would need minutes for these.
const HOSTILE = [
  "`", "``` ", "*", "**a ", "*a", "- ", "-  ", "  - a\n", "1. ", "# ", "_ ", "\n", "```\n",
  "~~~ ~ `", "`a``b```c", "* * * x", "``` ` ",
];
for (const piece of HOSTILE) {
  test(`much of ${JSON.stringify(piece)} is read in time`, () => {
    const source = piece.repeat(Math.ceil(200_000 / piece.length));
    const start = performance.now();
    assert.ok(Array.isArray(parseBlocks(source)));
    assert.ok(performance.now() - start < 2000);
  });
}
