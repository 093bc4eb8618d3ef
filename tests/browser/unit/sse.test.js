// tests/browser/unit/sse.test.js
// The parser of server-sent events: the same events however the text is cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "../../../web/sse.js";
import { everyCut, randomCuts } from "./cuts.js";

const parseAll = (pieces) => {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece));
};

const STREAM = "\uFEFFdata: one\n\n: a comment\n\ndata: {\"a\":\r\ndata:  \"b\"}\r\n\r\n" +
  "event: error\rdata\rdata:x:y\r\rid: 7\nretry: 1\n\ndata: 하늘 😀\n\n";
const EVENTS = [
  { event: "", data: "one" },
  { event: "", data: "{\"a\":\n \"b\"}" },
  { event: "error", data: "\nx:y" },
  { event: "", data: "하늘 😀" },
];

test("events are those of the standard", () => {
  assert.deepEqual(parseAll([STREAM]), EVENTS);
});

test("up to two cuts anywhere change nothing", () => {
  for (const pieces of everyCut(STREAM, 2)) assert.deepEqual(parseAll(pieces), EVENTS);
});

test("any number of cuts changes nothing", () => {
  for (const pieces of randomCuts(STREAM, 2000)) assert.deepEqual(parseAll(pieces), EVENTS);
});

test("an event that has not ended is not given", () => {
  assert.deepEqual(parseAll(["data: half\n"]), []);
  assert.deepEqual(parseAll(["data: half\n", "\n"]), [{ event: "", data: "half" }]);
});

test("an event without data is none", () => {
  assert.deepEqual(parseAll(["event: ping\n\n", "data\n\n"]), [{ event: "", data: "" }]);
});

test("what never ends is refused, in one line or many", () => {
  const line = new SseParser();
  assert.throws(() => {
    for (let i = 0; i < 9; ++i) line.push("x".repeat(1 << 20));
  }, RangeError);
  const lines = new SseParser();
  assert.throws(() => {
    for (let i = 0; i < 9; ++i) lines.push(`data: ${"x".repeat(1 << 20)}\n`);
  }, RangeError);
});
