// tests/browser/unit/request.test.js
// The form as the fields of a request, faults of fields, and faults of answers in one line.
import assert from "node:assert/strict";
import { test } from "node:test";
import { explain, formField, localFault, readFault } from "../../../web/faults.js";
import { DEFAULTS, formatHasSource, readForm, requestBody } from "../../../web/request.js";

const read = (fields) => readForm({ ...DEFAULTS, ...fields });

test("an empty form asks for nothing", () => {
  assert.deepEqual(read({}), { fields: {}, faults: [] });
});

test("each field is sent as the API has it", () => {
  const { fields, faults } = read({
    temperature: "0.7", top_p: ".9", max_tokens: "64", seed: "-5", thinking: "enabled",
    reasoning_effort: "70", tool_choice: "required",
    tools: "[{\"name\": \"f\"}, {\"type\": \"function\", \"function\": {\"name\": \"g\"}}]",
    format: "json_schema", format_source: "{\"type\": \"object\"}", more: "{\"top_k\": 3}",
  });
  assert.deepEqual(faults, []);
  assert.deepEqual(fields, {
    temperature: 0.7, top_p: 0.9, max_tokens: 64, seed: -5, thinking: { type: "enabled" },
    reasoning_effort: 70, tool_choice: "required", top_k: 3,
    tools: [{ type: "function", function: { name: "f" } },
      { type: "function", function: { name: "g" } }],
    response_format: { type: "json_schema",
      json_schema: { name: "answer", schema: { type: "object" } } },
  });
});

const FORMATS = [
  ["json_object", "", { type: "json_object" }],
  ["regex", "[0-9]+", { type: "regex", regex: "[0-9]+" }],
  ["choice", "yes\n no \n\n", { type: "choice", choice: ["yes", "no"] }],
  ["grammar", "start: \"a\"", { type: "grammar", grammar: "start: \"a\"" }],
];
for (const [format, source, expected] of FORMATS) {
  test(`format ${format}`, () => {
    const { fields } = read({ format, format_source: source });
    assert.deepEqual(fields.response_format, expected);
    assert.equal(formatHasSource(format), source !== "");
  });
}

test("words of effort stay words", () => {
  assert.equal(read({ reasoning_effort: "max" }).fields.reasoning_effort, "max");
});

test("a choice of tools without tools is not sent", () => {
  assert.deepEqual(read({ tool_choice: "required" }).fields, {});
});

const FAULTS = [
  [{ temperature: "3" }, "temperature", "number"],
  [{ temperature: "0x1" }, "temperature", "number"],
  [{ top_p: "a" }, "top_p", "number"],
  [{ max_tokens: "0" }, "max_tokens", "integer"],
  [{ max_tokens: "1.0" }, "max_tokens", "integer"],
  [{ seed: "9007199254740993" }, "seed", "integer"],
  [{ reasoning_effort: "101" }, "reasoning_effort", "integer"],
  [{ tools: "{" }, "tools", "json"],
  [{ tools: "[1]" }, "tools", "tools"],
  [{ format: "json_schema", format_source: "[]" }, "format_source", "object"],
  [{ format: "json_schema", format_source: "" }, "format_source", "json"],
  [{ format: "regex" }, "format_source", "missing"],
  [{ format: "choice", format_source: " \n" }, "format_source", "missing"],
  [{ more: "[]" }, "more", "object"],
  [{ more: "{\"stream\": false}" }, "more", "taken"],
];
for (const [form, field, reason] of FAULTS) {
  test(`${JSON.stringify(form)} cannot be read`, () => {
    const { faults } = read(form);
    assert.deepEqual(faults.map((fault) => [fault.field, fault.reason]), [[field, reason]]);
  });
}

test("a body streams and asks for the usage", () => {
  const messages = [{ role: "user", content: "a" }];
  assert.deepEqual(requestBody("m", { seed: 1 }, messages),
    { model: "m", messages, stream: true, stream_options: { include_usage: true }, seed: 1 });
});

const error = (fields) => JSON.stringify({ error: { message: "what happened", ...fields } });
const ANSWERS = [
  [401, error({}), "advice.key", false],
  [400, error({ param: "temperature" }), "advice.field", false],
  [400, error({ param: "response_format.json_schema.schema" }), "advice.field", false],
  [400, error({ param: "messages[2].content" }), "advice.request", false],
  [400, error({ code: "context_length_exceeded", param: "messages" }), "advice.context", false],
  [404, error({ code: "model_not_found" }), "advice.model", false],
  [429, error({}), "advice.wait", true],
  [503, error({}), "advice.wait", true],
  [504, error({}), "advice.deadline", true],
  [500, error({}), "advice.server", true],
  [502, "<html>Bad Gateway</html>", "advice.server", true],
  [413, error({}), "advice.request", false],
];
for (const [status, body, advice, retry] of ANSWERS) {
  test(`${status} ${body} has advice`, () => {
    const fault = readFault(status, body);
    const explained = explain(fault, DEFAULTS);
    assert.equal(explained.advice, advice);
    assert.equal(explained.retry, retry);
    assert.equal(fault.message, body.startsWith("<") ? "" : "what happened");
  });
}

test("what no server said has advice too", () => {
  for (const kind of ["unreachable", "broken", "unreadable", "full", "no-model", "form"])
    assert.equal(explain(localFault(kind), DEFAULTS).advice, `advice.${kind}`);
});

test("a fault's headers are read with their limits", () => {
  const header = (values) => (name) => values[name] ?? null;
  assert.equal(readFault(503, "", header({ "Retry-After": "5" })).retrySeconds, 5);
  assert.equal(readFault(503, "", header({ "Retry-After": "1e9" })).retrySeconds, 3600);
  assert.equal(readFault(503, "", header({ "Retry-After": "soon" })).retrySeconds, 0);
  assert.equal(readFault(500, "", header({ "X-Request-Id": "req-1" })).requestId, "req-1");
});

test("the form's field of a fault is found", () => {
  const field = (param) => formField({ ...localFault(""), param }, DEFAULTS);
  assert.equal(field("tools[0].function.name"), "tools");
  assert.equal(field("response_format"), "format");
  assert.equal(field("top_k"), null);
  assert.equal(field(""), null);
});
