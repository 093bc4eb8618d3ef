// web/conversation.js
// What was said so far: questions and answers in order, as the page keeps them and as a request
// wants them. Changing something in the middle drops what came after it. Pure.
import { Answer } from "./answer.js";

const TURNS_MAX = 1000;
const text = (value) => (typeof value === "string" ? value : "");

export class Conversation {
  // {kind: "user", text}, or
  // {kind: "answer", answer: Answer, results: [text of each call], request, state, fault, seconds}:
  // `request` {model, system, fields} is what was asked for; `state` is "running", "done",
  // "stopped" or "failed", and then there is a `fault`; `seconds` {first, last} since it was sent.
  turns = [];

  get full() {
    return this.turns.length >= TURNS_MAX;
  }

  addUser(userText) {
    this.turns.push({ kind: "user", text: userText });
    return this.turns.at(-1);
  }

  addAnswer(request) {
    this.turns.push({
      kind: "answer",
      answer: new Answer(),
      results: [],
      request,
      state: "running",
      fault: null,
      seconds: null,
    });
    return this.turns.at(-1);
  }

  // Drops the turn at `index` and all that follow it.
  cut(index) {
    this.turns.length = Math.min(this.turns.length, Math.max(0, index));
  }

  // The `messages` of a request that is to be answered after the first `count` turns. An answer
  // of which nothing came says nothing.
  messages(system, count = this.turns.length) {
    const messages = system ? [{ role: "system", content: system }] : [];
    for (const turn of this.turns.slice(0, count)) {
      if (turn.kind === "user") {
        messages.push({ role: "user", content: turn.text });
        continue;
      }
      if (turn.answer.empty) continue;
      messages.push(turn.answer.message());
      if (!turn.answer.callsWhole) continue;
      turn.answer.calls.forEach((call, i) => {
        messages.push({ role: "tool", tool_call_id: call.id, content: turn.results[i] ?? "" });
      });
    }
    return messages;
  }

  toJson() {
    return JSON.stringify(
      this.turns.map((turn) =>
        turn.kind === "user" ? turn : { ...turn, fault: null, answer: turn.answer.toData() }));
  }

  // From what toJson made; what is no such thing gives an empty conversation.
  static fromJson(json) {
    const conversation = new Conversation();
    let kept = null;
    try {
      kept = JSON.parse(json ?? "null");
    } catch {
      return conversation;
    }
    if (!Array.isArray(kept)) return conversation;
    for (const turn of kept.slice(0, TURNS_MAX)) {
      if (turn?.kind === "user") {
        conversation.addUser(text(turn.text));
      } else if (turn?.kind === "answer") {
        const { model, system, fields } = turn.request ?? {};
        const made = conversation.addAnswer(
          { model: text(model), system: text(system), fields: fields ?? {} });
        made.answer = Answer.fromData(turn.answer);
        made.state = made.answer.finish ? "done" : "stopped";
        made.results = Array.isArray(turn.results) ? turn.results.map(text) : [];
        const { first, last } = turn.seconds ?? {};
        if (Number.isFinite(first) && Number.isFinite(last)) made.seconds = { first, last };
      }
    }
    return conversation;
  }
}

// Tokens a second after the first one; null where there is nothing to divide.
export function tokensPerSecond(turn) {
  const tokens = turn.answer.usage?.completion ?? 0;
  const seconds = turn.seconds ? turn.seconds.last - turn.seconds.first : 0;
  return tokens > 1 && seconds > 0 ? (tokens - 1) / seconds : null;
}
