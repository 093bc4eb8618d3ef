// tests/clients/node/limits.test.js
// A key's limits, as the SDKs for Node.js live with them: they wait as Retry-After says, and ask
// again by themselves.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { KEY, load, MODEL, startServer } from "./server.js";

const { OpenAI, RateLimitError } = load("openai");
const Anthropic = load("@anthropic-ai/sdk").default;

const ASK = { model: MODEL, messages: [{ role: "user", content: "Hello" }], max_tokens: 2 };
const WAIT_MS_MIN = 4000;

let folder;
let server;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "plumb-limits-"));
  writeFileSync(join(folder, "limits.toml"), "requests-per-minute = 6\n");
  server = await startServer("--limits", join(folder, "limits.toml"));
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true });
});

// Until the next request is some seconds away.
async function useUp() {
  for (;;) {
    const answer = await fetch(`${server.url}/v1/tokenize`, {
      method: "POST", body: '{"prompt": "a"}',
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${KEY}` },
    });
    assert.ok(answer.ok || answer.status === 429);
    if (answer.status === 429 && answer.headers.get("retry-after") * 1000 > WAIT_MS_MIN) return;
    await wait(100);
  }
}

function clients(maxRetries) {
  return [
    new OpenAI({ baseURL: `${server.url}/v1`, apiKey: KEY, maxRetries }).chat.completions,
    new Anthropic({ baseURL: server.url, apiKey: KEY, maxRetries }).messages,
  ];
}

test("a refusal is a rate limit's, and says when to come back", async () => {
  for (const [api, Wrong] of [
    [clients(0)[0], RateLimitError], [clients(0)[1], Anthropic.RateLimitError]]) {
    await useUp();
    const error = await api.create(ASK).then(() => null, (caught) => caught);
    assert.ok(error instanceof Wrong);
    assert.ok(error.headers.get("retry-after") >= 1);
  }
});

test("it is waited for, and asked again", async () => {
  for (const api of clients(2)) {
    await useUp();
    const begun = performance.now();
    const { response } = await api.create(ASK).withResponse();
    assert.equal(response.status, 200);
    assert.ok(performance.now() - begun > WAIT_MS_MIN - 1000);
  }
});
