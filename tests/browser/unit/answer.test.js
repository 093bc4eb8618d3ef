// tests/browser/unit/answer.test.js
// An answer put together from chunks, and the conversation that it becomes part of.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Answer } from "../../../web/answer.js";
import { Conversation, tokensPerSecond } from "../../../web/conversation.js";

const delta = (fields, more = {}) => ({ choices: [{ index: 0, delta: fields, ...more }] });

const CHUNKS = [
  { ...delta({ role: "assistant", content: "" }), system_fingerprint: "fp_1", plumb: { seed: 42 } },
  delta({ reasoning_content: "Let me " }),
  delta({ reasoning_content: "look." }),
  delta({ content: "One " }),
  delta({ content: "moment." }),
  delta({ tool_calls: [{ index: 0, id: "c1", function: { name: "weather", arguments: "" } }] }),
  delta({ tool_calls: [{ index: 0, function: { arguments: "{\"city\":" } }] }),
  delta({ tool_calls: [{ index: 0, function: { arguments: "\"Rome\"}" } }] }),
  delta({ tool_calls: [{ index: 1, id: "c2", function: { name: "time", arguments: "{}" } }] }),
  delta({}, { finish_reason: "tool_calls" }),
  { choices: [], usage: { prompt_tokens: 9, completion_tokens: 7,
    prompt_tokens_details: { cached_tokens: 4 } } },
];

function put(chunks) {
  const answer = new Answer();
  chunks.forEach((chunk) => answer.add(chunk));
  return answer;
}

test("an answer holds what its chunks hold", () => {
  const answer = put(CHUNKS);
  assert.equal(answer.reasoning, "Let me look.");
  assert.equal(answer.content, "One moment.");
  assert.deepEqual(answer.calls, [
    { id: "c1", name: "weather", arguments: "{\"city\":\"Rome\"}" },
    { id: "c2", name: "time", arguments: "{}" },
  ]);
  assert.deepEqual(answer.usage, { prompt: 9, completion: 7, cached: 4 });
  assert.equal(answer.seed, 42);
  assert.equal(answer.fingerprint, "fp_1");
  assert.equal(answer.finish, "tool_calls");
});

test("an answer goes back as the API wants it", () => {
  assert.deepEqual(put(CHUNKS).message(), {
    role: "assistant",
    content: "One moment.",
    reasoning_content: "Let me look.",
    tool_calls: [
      { id: "c1", type: "function",
        function: { name: "weather", arguments: "{\"city\":\"Rome\"}" } },
      { id: "c2", type: "function", function: { name: "time", arguments: "{}" } },
    ],
  });
});

test("calls that were cut short do not go back", () => {
  const cut = put(CHUNKS.slice(0, 7));
  assert.equal(cut.callsWhole, false);
  assert.deepEqual(Object.keys(cut.message()), ["role", "content", "reasoning_content"]);
});

test("chunks of any shape are survived", () => {
  for (const chunk of [null, 1, "x", [], {}, { choices: null }, { choices: [null] },
    delta(null), delta({ content: 7, reasoning_content: {} }), delta({ tool_calls: {} }),
    delta({ tool_calls: [null] }), { usage: 1, choices: [] }, { plumb: { seed: "x" } }]) {
    const answer = put([chunk]);
    assert.equal(answer.content, "");
    assert.equal(answer.seed, null);
  }
});

test("an answer has a greatest size", () => {
  assert.throws(() => put([delta({ tool_calls: [{ index: 4000 }] })]), RangeError);
  const answer = new Answer();
  assert.throws(() => {
    for (let i = 0; i < 9; ++i) answer.add(delta({ content: "x".repeat(1 << 20) }));
  }, RangeError);
});

function weatherTalk() {
  const talk = new Conversation();
  talk.addUser("How is Rome?");
  const turn = talk.addAnswer({ model: "m", system: "Be short.", fields: { seed: 42 } });
  CHUNKS.forEach((chunk) => turn.answer.add(chunk));
  turn.state = "done";
  turn.results = ["sunny"];
  turn.seconds = { first: 0.5, last: 2.5 };
  return talk;
}

test("a request says who said what, results behind their calls", () => {
  const talk = weatherTalk();
  talk.addUser("Thanks!");
  const messages = talk.messages("Be short.");
  assert.deepEqual(messages.map((message) => message.role),
    ["system", "user", "assistant", "tool", "tool", "user"]);
  assert.deepEqual(messages[3], { role: "tool", tool_call_id: "c1", content: "sunny" });
  assert.deepEqual(messages[4], { role: "tool", tool_call_id: "c2", content: "" });
  assert.deepEqual(talk.messages("", 1), [{ role: "user", content: "How is Rome?" }]);
});

test("an answer of which nothing came is not sent", () => {
  const talk = new Conversation();
  talk.addUser("a");
  talk.addAnswer({ model: "m", system: "", fields: {} }).state = "failed";
  talk.addUser("b");
  assert.deepEqual(talk.messages("").map((message) => message.content), ["a", "b"]);
});

test("a conversation survives being kept", () => {
  const talk = weatherTalk();
  const again = Conversation.fromJson(talk.toJson());
  assert.deepEqual(again.messages("x"), talk.messages("x"));
  assert.equal(again.turns[1].state, "done");
  assert.deepEqual(again.turns[1].seconds, { first: 0.5, last: 2.5 });
  assert.equal(tokensPerSecond(again.turns[1]), 3);
});

test("what was kept may be anything", () => {
  for (const json of [null, "", "{", "7", "{}", "[null, 1, {}]", "[{\"kind\": \"user\"}]",
    "[{\"kind\": \"answer\", \"request\": 3, \"answer\": {\"calls\": [1, null], \"usage\": 5}}]"]) {
    const talk = Conversation.fromJson(json);
    assert.ok(talk.turns.length <= 1);
    assert.ok(Array.isArray(talk.messages("")));
  }
});

test("cutting drops what follows", () => {
  const talk = weatherTalk();
  talk.cut(1);
  assert.equal(talk.turns.length, 1);
  talk.cut(-3);
  assert.equal(talk.turns.length, 0);
});

test("a rate needs two tokens and time between them", () => {
  const turn = { answer: new Answer(), seconds: { first: 1, last: 1 } };
  assert.equal(tokensPerSecond(turn), null);
  turn.answer.usage = { prompt: 1, completion: 1, cached: 0 };
  turn.seconds.last = 2;
  assert.equal(tokensPerSecond(turn), null);
  turn.answer.usage.completion = 11;
  assert.equal(tokensPerSecond(turn), 10);
});
