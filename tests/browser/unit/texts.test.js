// tests/browser/unit/texts.test.js
// Both languages say the same things, and everything that the page asks for is said.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Texts } from "../../../web/texts.js";
import { ENGLISH } from "../../../web/texts_en.js";
import { KOREAN } from "../../../web/texts_ko.js";

const WEB = new URL("../../../web/", import.meta.url);
const source = (name) => readFileSync(new URL(name, WEB), "utf8");

test("the languages have the same keys, with the same values in them", () => {
  assert.deepEqual(Object.keys(KOREAN), Object.keys(ENGLISH));
  const values = (text) => [...text.matchAll(/\{\w+\}/g)].map(([value]) => value).sort();
  for (const key of Object.keys(ENGLISH))
    assert.deepEqual(values(KOREAN[key]), values(ENGLISH[key]), key);
});

test("the page names every module, so that all are fetched at once", () => {
  const modules = readdirSync(WEB).filter((name) => name.endsWith(".js")).sort();
  const named = [...source("index.html").matchAll(/"console\/(\w+\.js)"/g)].map(([, name]) => name);
  assert.deepEqual(named.sort(), modules);
});

test("what the page shows at first is the English text", () => {
  const page = source("index.html");
  const shown = [...page.matchAll(/data-text="([^"]+)">([^<]*)</g)];
  assert.ok(shown.length > 30);
  for (const [, key, text] of shown) assert.equal(text, ENGLISH[key], key);
  for (const [, key] of page.matchAll(/data-(?:label|placeholder)="([^"]+)"/g))
    assert.ok(key in ENGLISH, key);
});

test("every text that a module names exists, and every text is named", () => {
  const named = new Set();
  const modules = readdirSync(WEB).filter((name) => name.endsWith(".js") && !/^texts_/.test(name));
  for (const text of [...modules, "index.html"].map(source))
    for (const key of Object.keys(ENGLISH)) if (text.includes(`"${key}"`)) named.add(key);
  // Put together from a word that stands elsewhere.
  const together = /^(?:fault\.|advice\.|theme-)/;
  for (const key of Object.keys(ENGLISH)) assert.ok(named.has(key) || together.test(key), key);
  for (const name of modules)
    for (const [, key] of source(name).matchAll(/\.say\("([^"]+)"/g))
      assert.ok(key in ENGLISH, key);
});

test("values are put in as the language has them", () => {
  assert.equal(new Texts("en").say("fact-tokens", { count: 1234 }), "1,234 tokens");
  assert.equal(new Texts("ko").say("fact-tokens", { count: 1234 }), "1,234토큰");
  assert.equal(new Texts("fr").language, "en");
  assert.throws(() => new Texts("en").say("no such key"));
});
