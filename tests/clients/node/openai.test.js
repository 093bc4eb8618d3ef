// tests/clients/node/openai.test.js
// OpenAI's SDK for Node.js: chats, streams, tools, structured output and errors, over Chat
// Completions and Responses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { KEY, load, MODEL, startServer, startSlow } from "./server.js";

const { OpenAI, AuthenticationError, BadRequestError, NotFoundError } = load("openai");
const { zodResponseFormat, zodTextFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const SKY = [{ role: "user", content: "Why is the sky blue?" }];
const TIMER = [{ role: "user", content: "Set a timer for 25 minutes." }];
const OPTIONS = { model: MODEL, temperature: 0 };
const PARAMETERS = {
  type: "object", properties: { minutes: { type: "integer" } }, required: ["minutes"],
  additionalProperties: false,
};
const TOOL = { name: "set_timer", description: "Set a timer", parameters: PARAMETERS };
const Timer = z.object({ minutes: z.number().int().min(0).max(99) });

let server;
let client;

before(async () => {
  server = await startServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: KEY, maxRetries: 0 });
});
after(() => server?.stop());

test("a chat, streamed, is the whole answer", async () => {
  const whole = await client.chat.completions.create({ ...OPTIONS, messages: SKY });
  const { content } = whole.choices[0].message;
  assert.ok(content.length > 0);
  assert.equal(whole.choices[0].finish_reason, "stop");
  const stream = client.chat.completions.stream({ ...OPTIONS, messages: SKY });
  let deltas = "";
  stream.on("content", (delta) => { deltas += delta; });
  assert.equal(await stream.finalContent(), content);
  assert.equal(deltas, content);
});

test("a tool runs, and its result is answered", async () => {
  const called = [];
  const runner = client.chat.completions.runTools({
    ...OPTIONS, messages: TIMER, stream: true,
    tools: [{
      type: "function",
      function: {
        ...TOOL, parse: JSON.parse,
        function: ({ minutes }) => {
          called.push(minutes);
          return { ok: true };
        },
      },
    }],
  });
  assert.ok((await runner.finalContent()).length > 0);
  assert.deepEqual(called, [25]);
});

test("a chat is parsed by a schema", async () => {
  const answer = await client.chat.completions.parse({
    ...OPTIONS, messages: TIMER, response_format: zodResponseFormat(Timer, "timer"),
  });
  assert.ok(Number.isInteger(answer.choices[0].message.parsed.minutes));
});

test("a response, streamed, is the whole answer", async () => {
  const whole = await client.responses.create({ ...OPTIONS, input: "Why is the sky blue?" });
  assert.ok(whole.output_text.length > 0);
  const stream = client.responses.stream({ ...OPTIONS, input: "Why is the sky blue?" });
  let deltas = "";
  stream.on("response.output_text.delta", (event) => { deltas += event.delta; });
  assert.equal((await stream.finalResponse()).output_text, whole.output_text);
  assert.equal(deltas, whole.output_text);
});

test("a response calls a tool and goes on with its result", async () => {
  const tools = [{ type: "function", strict: true, ...TOOL }];
  const first = await client.responses.create({ ...OPTIONS, input: TIMER, tools });
  const call = first.output.find((item) => item.type === "function_call");
  assert.deepEqual([call.name, JSON.parse(call.arguments)], ["set_timer", { minutes: 25 }]);
  const second = await client.responses.create({
    ...OPTIONS, tools, previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: '{"ok": true}' }],
  });
  assert.ok(second.output_text.length > 0);
});

test("a response is parsed by a schema", async () => {
  const answer = await client.responses.parse({
    ...OPTIONS, input: TIMER, text: { format: zodTextFormat(Timer, "timer") },
  });
  assert.ok(Number.isInteger(answer.output_parsed.minutes));
});

test("errors are typed", async () => {
  const stranger = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), AuthenticationError);
  const create = (options) =>
    client.chat.completions.create({ ...OPTIONS, messages: SKY, ...options });
  await assert.rejects(create({ model: "gpt-5" }), NotFoundError);
  await assert.rejects(create({ temperature: 3 }), (error) =>
    error instanceof BadRequestError && error.param === "temperature");
  await assert.rejects(client.responses.create({ ...OPTIONS, input: SKY, top_p: 7 }), (error) =>
    error instanceof BadRequestError && error.param === "top_p");
});

test("an answer behind empty lines is read, a late error is in the body", async () => {
  const slow = await startSlow(server.url);
  const late = new OpenAI({ baseURL: `${slow.url}/v1`, apiKey: KEY, maxRetries: 0 });
  const whole = await late.chat.completions.create({ ...OPTIONS, messages: SKY });
  assert.equal(whole.choices[0].finish_reason, "stop");
  const response = await late.responses.create({ ...OPTIONS, input: "Why is the sky blue?" });
  assert.ok(response.output_text.length > 0);
  const failed = await late.chat.completions.create({ ...OPTIONS, messages: SKY, model: "none" });
  assert.equal(failed.error.code, "model_not_found");
  slow.stop();
});
