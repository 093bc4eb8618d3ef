// web/markdown.js
// The small part of Markdown that models write most: code in fences, headings, lists, rules, and
// inside a line code, bold and emphasis; all else is text as it stands. Every scan goes forward
// only, so hostile text costs no more than its length. Makes plain objects; the page shows them by
// web/markdown_view.js. Pure.

const HEADING = /^(#{1,6}) +(.*)$/;
const ITEM = /^( *)(?:[-*+]|(\d{1,9})[.)]) +(\S.*)$/;
const RULE = /^ {0,3}(?:-(?: *-){2,}|\*(?: *\*){2,}|_(?: *_){2,}) *$/;
const WORD = /[A-Za-z0-9]/;
const DEPTH_MAX = 6;

const isBlank = (line) => line.trim() === "";
const startsBlock = (line) =>
  fenceOf(line) !== null || HEADING.test(line) || ITEM.test(line) || RULE.test(line);

// {indent, mark, language} of a line that opens code; null for any other.
function fenceOf(line) {
  const mark = line.trimStart();
  const length = mark[0] === "`" || mark[0] === "~" ? runLength(mark, 0) : 0;
  if (length < 3 || mark.includes("`", length)) return null;
  const language = mark.slice(length).trim().split(" ", 1)[0];
  return { indent: line.length - mark.length, mark: mark.slice(0, length), language };
}

// Lines of `text` from `at` on: {line, next}, `next` behind the line's end; null at the end.
function lineAt(text, at) {
  if (at >= text.length) return null;
  const end = text.indexOf("\n", at);
  const stop = end < 0 ? text.length : end;
  const line = text.slice(at, text[stop - 1] === "\r" ? stop - 1 : stop).replaceAll("\t", "    ");
  return { line, next: end < 0 ? text.length : end + 1 };
}

// [{kind: "code" | "heading" | "list" | "rule" | "text", start, end, ...}]; start and end are where
// the block stands in `text`, from which it was read. See the functions below for the rest.
export function parseBlocks(text, from = 0) {
  const blocks = [];
  let at = from;
  for (let here = lineAt(text, at); here !== null; here = lineAt(text, at)) {
    if (isBlank(here.line)) {
      at = here.next;
      continue;
    }
    const block = { start: at, ...readBlock(text, at, here) };
    blocks.push(block);
    at = block.end;
  }
  return blocks;
}

function readBlock(text, at, here) {
  const fence = fenceOf(here.line);
  if (fence !== null) return readCode(text, here.next, fence);
  const heading = HEADING.exec(here.line);
  if (heading) {
    const level = heading[1].length;
    return { kind: "heading", level, inlines: parseInlines(heading[2]), end: here.next };
  }
  if (RULE.test(here.line)) return { kind: "rule", end: here.next };
  return ITEM.test(here.line) ? readList(text, at) : readText(text, at);
}

// {language, text, closed}: closed is false while the fence's end has not come.
function readCode(text, at, { indent, mark, language }) {
  const lines = [];
  let closed = false;
  while (at < text.length && !closed) {
    const end = text.indexOf("\n", at);
    const line = text.slice(at, end < 0 ? text.length : end).replace(/\r$/, "");
    at = end < 0 ? text.length : end + 1;
    closed = closesFence(line.trim(), mark);
    if (!closed) lines.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
  }
  return { kind: "code", language, text: lines.join("\n"), closed, end: at };
}

const closesFence = (line, mark) =>
  line.length >= mark.length && line[0] === mark[0] && runLength(line, 0) === line.length;

// {items: [{depth, ordered, number, inlines}]}: depth 0 is the outermost.
function readList(text, at) {
  const items = [];
  const indents = []; // of the lists that are open
  let end = at;
  for (let here = lineAt(text, at); here !== null; here = lineAt(text, at)) {
    const item = RULE.test(here.line) ? null : ITEM.exec(here.line);
    if (item) {
      const indent = item[1].length;
      while (indents.length > 1 && indent < indents.at(-1)) indents.pop();
      if (indents.length === 0 || (indent > indents.at(-1) + 1 && indents.length < DEPTH_MAX))
        indents.push(indent);
      const number = Number(item[2] ?? 0);
      const ordered = item[2] !== undefined;
      items.push({ depth: indents.length - 1, ordered, number, lines: [item[3]] });
    } else if (isBlank(here.line)) {
      at = here.next;
      continue;
    } else if (at === end && !startsBlock(here.line)) {
      items.at(-1).lines.push(here.line.trim()); // goes on with the line before
    } else {
      break;
    }
    at = end = here.next;
  }
  for (const item of items) {
    item.inlines = parseInlines(item.lines.join("\n"));
    delete item.lines;
  }
  return { kind: "list", items, end };
}

// {inlines}
function readText(text, at) {
  const lines = [];
  let here = lineAt(text, at);
  do {
    lines.push(here.line);
    at = here.next;
    here = lineAt(text, at);
  } while (here !== null && !isBlank(here.line) && !startsBlock(here.line));
  return { kind: "text", inlines: parseInlines(lines.join("\n")), end: at };
}

// [{kind: "text" | "code" | "bold" | "emphasis", text}]. Marks that are not closed are text.
export function parseInlines(text) {
  const inlines = [];
  const missing = new Set(); // marks that do not come again
  let plain = "";
  const add = (kind, inner) => {
    if (plain) inlines.push({ kind: "text", text: plain });
    plain = "";
    inlines.push({ kind, text: inner });
  };
  for (let at = 0; at < text.length;) {
    const mark = markAt(text, at);
    const inner = mark && !missing.has(mark.text) ? readMarked(text, at, mark, missing) : null;
    if (inner !== null) {
      add(mark.kind, mark.kind === "code" ? trimCode(inner) : inner);
      at += inner.length + 2 * mark.text.length;
    } else {
      plain += mark ? mark.text : text[at];
      at += mark ? mark.text.length : 1;
    }
  }
  if (plain) inlines.push({ kind: "text", text: plain });
  return inlines;
}

function runLength(text, at) {
  let end = at;
  while (text[end] === text[at]) ++end;
  return end - at;
}

function markAt(text, at) {
  if (text[at] !== "`" && text[at] !== "*") return null;
  const run = text.slice(at, at + runLength(text, at));
  if (run[0] === "`") return { kind: "code", text: run };
  return { kind: run === "**" ? "bold" : run === "*" ? "emphasis" : "text", text: run };
}

// What stands between the mark at `at` and the same mark again; null when it marks nothing.
function readMarked(text, at, mark, missing) {
  if (mark.kind === "text") return null;
  const start = at + mark.text.length;
  const isCode = mark.kind === "code";
  // 2*3*4 and 2**3 are no marks; a Korean particle right behind one is usual.
  if (!isCode && (/^\s?$/.test(text[start] ?? "") || WORD.test(text[at - 1] ?? ""))) return null;
  for (let end = text.indexOf(mark.text, start); end >= 0;) {
    const run = runLength(text, end);
    const within = mark.kind === "emphasis" && WORD.test(text[end + run] ?? "");
    const closes = isCode || (!/\s/.test(text[end - 1]) && !within);
    if (run === mark.text.length && closes && end > start) return text.slice(start, end);
    end = text.indexOf(mark.text, end + run);
  }
  missing.add(mark.text);
  return null;
}

// One space on both sides makes room for a mark inside.
function trimCode(text) {
  const padded = text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "";
  return padded ? text.slice(1, -1) : text;
}
