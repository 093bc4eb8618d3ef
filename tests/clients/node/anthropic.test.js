// tests/clients/node/anthropic.test.js
// Anthropic's SDK for Node.js: messages, streams, thinking, tools, structured output and errors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { KEY, load, MODEL, startServer, startSlow } from "./server.js";

const Anthropic = load("@anthropic-ai/sdk").default ?? load("@anthropic-ai/sdk");

const SKY = [{ role: "user", content: "Why is the sky blue?" }];
const TIMER = [{ role: "user", content: "Set a timer for 25 minutes." }];
const OPTIONS = { model: MODEL, max_tokens: 200, temperature: 0 };
const SCHEMA = {
  type: "object", properties: { minutes: { type: "integer" } }, required: ["minutes"],
  additionalProperties: false,
};
const TOOLS = [{ name: "set_timer", description: "Set a timer", input_schema: SCHEMA }];

let server;
let client;

before(async () => {
  server = await startServer();
  client = new Anthropic({ baseURL: server.url, apiKey: KEY, maxRetries: 0 });
});
after(() => server?.stop());

const textOf = (message) =>
  message.content.filter(({ type }) => type === "text").map(({ text }) => text).join("");

test("a message, streamed, is the whole answer", async () => {
  const whole = await client.messages.create({ ...OPTIONS, messages: SKY });
  assert.ok(textOf(whole).length > 0);
  assert.equal(whole.stop_reason, "end_turn");
  const stream = client.messages.stream({ ...OPTIONS, messages: SKY });
  let deltas = "";
  stream.on("text", (delta) => { deltas += delta; });
  const final = await stream.finalMessage();
  assert.deepEqual(final.content, whole.content);
  assert.equal(deltas, textOf(whole));
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
});

test("thoughts are blocks of their own, and may come back", async () => {
  const thinking = { type: "enabled", budget_tokens: 1024 };
  const options = { ...OPTIONS, max_tokens: 2000, thinking };
  const first = await client.messages.create({ ...options, messages: SKY });
  assert.deepEqual(first.content.map(({ type }) => type), ["thinking", "text"]);
  assert.ok(first.content[0].signature.length > 0);
  const second = await client.messages.create({
    ...options, messages: [...SKY, { role: "assistant", content: first.content }, ...SKY],
  });
  assert.ok(textOf(second).length > 0);
});

test("a tool is called, streamed, and its result is answered", async () => {
  const first = await client.messages.stream({ ...OPTIONS, messages: TIMER, tools: TOOLS })
    .finalMessage();
  assert.equal(first.stop_reason, "tool_use");
  const call = first.content.at(-1);
  assert.deepEqual([call.name, call.input], ["set_timer", { minutes: 25 }]);
  const second = await client.messages.create({
    ...OPTIONS, tools: TOOLS,
    messages: [...TIMER, { role: "assistant", content: first.content }, {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: call.id, content: '{"ok": true}' }],
    }],
  });
  assert.equal(second.stop_reason, "end_turn");
  assert.ok(textOf(second).length > 0);
});

test("an answer follows a schema", async () => {
  const schema = { ...SCHEMA, properties: { minutes: { type: "integer", maximum: 99 } } };
  const answer = await client.messages.create({
    ...OPTIONS, messages: TIMER, output_config: { format: { type: "json_schema", schema } },
  });
  assert.ok(Number.isInteger(JSON.parse(textOf(answer)).minutes));
});

test("tokens are counted as an answer reports them", async () => {
  const question = { model: MODEL, messages: SKY };
  const { input_tokens: count } = await client.messages.countTokens(question);
  const { usage } = await client.messages.create({ ...OPTIONS, messages: SKY });
  assert.equal(usage.input_tokens + usage.cache_read_input_tokens, count);
});

test("errors are typed", async () => {
  const stranger = new Anthropic({ baseURL: server.url, apiKey: "wrong", maxRetries: 0 });
  const create = (api, options) =>
    api.messages.create({ ...OPTIONS, messages: SKY, ...options });
  await assert.rejects(create(stranger, {}), Anthropic.AuthenticationError);
  await assert.rejects(create(client, { model: "claude-opus-5" }), Anthropic.NotFoundError);
  await assert.rejects(create(client, { temperature: 3 }), (error) =>
    error instanceof Anthropic.BadRequestError &&
    error.error.error.message.includes("temperature"));
});

test("an answer behind empty lines is read, a late error is in the body", async () => {
  const slow = await startSlow(server.url);
  const late = new Anthropic({ baseURL: slow.url, apiKey: KEY, maxRetries: 0 });
  const whole = await late.messages.create({ ...OPTIONS, messages: SKY });
  assert.ok(textOf(whole).length > 0);
  const failed = await late.messages.create({ ...OPTIONS, messages: SKY, model: "none" });
  assert.equal(failed.error.type, "not_found_error");
  slow.stop();
});
