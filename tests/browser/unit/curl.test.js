// tests/browser/unit/curl.test.js
// Commands are read by a real shell: whatever was typed arrives as it was typed, and no key is in
// them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { curlCommand, shellWord } from "../../../web/curl.js";

const URL_OF_CHAT = "http://127.0.0.1:8000/v1/chat/completions";

// The arguments that a shell hands to curl, which is a function here.
function argumentsOf(command) {
  const script = `curl() { for word; do printf '%s\\0' "$word"; done; }\n${command}\n`;
  const env = { PATH: process.env.PATH, PLUMB_API_KEY: "the key" };
  const words = execFileSync("/bin/sh", ["-c", script], { env, encoding: "utf8" });
  return words.split("\0").slice(0, -1);
}

const HOSTILE = [
  "it's", "''", "'; touch hacked; '", "$(id) `id` $HOME \\", "line\nline\r\n", "@/etc/passwd",
  "\u2028 \u0000 \ud83d\ude00 하늘", "\"quoted\"", "-n", "!!", "%s", "*",
];

for (const content of HOSTILE) {
  test(`a shell reads ${JSON.stringify(content)} as it is`, () => {
    const body = { model: "m", messages: [{ role: "user", content }] };
    const words = argumentsOf(curlCommand({ url: URL_OF_CHAT, body, needsKey: false }));
    assert.equal(words.length, 6);
    assert.deepEqual(words.slice(0, 5),
      ["-N", URL_OF_CHAT, "-H", "Content-Type: application/json", "-d"]);
    assert.deepEqual(JSON.parse(words[5]), body);
  });
}

test("the key comes from a variable", () => {
  const command = curlCommand({ url: URL_OF_CHAT, body: {}, needsKey: true });
  assert.match(command, /Bearer \$PLUMB_API_KEY/);
  assert.ok(argumentsOf(command).includes("Authorization: Bearer the key"));
});

test("a word is one word", () => {
  assert.equal(shellWord("a b"), "'a b'");
  assert.equal(shellWord("a'b"), "'a'\\''b'");
});
