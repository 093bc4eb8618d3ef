// web/answer.js
// One answer, put together from the chunks of a Chat Completions stream: reasoning, text, calls of
// tools, how it ended, what it took. What a chunk holds is checked, not trusted. Pure.

const CALLS_MAX = 128;
const CHARS_MAX = 8 << 20;

const text = (value) => (typeof value === "string" ? value : "");

export class Answer {
  reasoning = "";
  content = "";
  calls = [];       // [{id, name, arguments}]
  finish = null;    // "stop", "length", "tool_calls"; null: not ended, or cut short
  usage = null;     // {prompt, completion, cached}
  seed = null;      // that was used
  fingerprint = ""; // of the weights that answered
  #chars = 0;

  // Adds one parsed chunk. Throws RangeError when the answer grows beyond all reason.
  add(chunk) {
    if (typeof chunk?.plumb?.seed === "number") this.seed = chunk.plumb.seed;
    this.fingerprint ||= text(chunk?.system_fingerprint);
    if (chunk?.usage) this.usage = readUsage(chunk.usage);
    const choice = Array.isArray(chunk?.choices) ? chunk.choices[0] : undefined;
    if (!choice) return;
    const delta = choice.delta ?? {};
    this.reasoning += this.#count(text(delta.reasoning_content));
    this.content += this.#count(text(delta.content));
    if (Array.isArray(delta.tool_calls)) delta.tool_calls.forEach((call) => this.#addCall(call));
    if (choice.finish_reason) this.finish = text(choice.finish_reason);
  }

  get empty() {
    return this.#chars === 0 && this.calls.length === 0;
  }

  // Whether the calls are whole, so that results can be sent.
  get callsWhole() {
    return this.calls.length > 0 && this.finish === "tool_calls";
  }

  // As `messages` wants it back. Calls that were cut short are left out: they have no results.
  message() {
    const message = { role: "assistant", content: this.content };
    if (this.reasoning) message.reasoning_content = this.reasoning;
    if (!this.callsWhole) return message;
    if (!this.content) message.content = null;
    message.tool_calls = this.calls.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: call.arguments },
    }));
    return message;
  }

  // For keeping: plain data, and back. What was kept may be anything.
  toData() {
    const { reasoning, content, calls, finish, usage, seed, fingerprint } = this;
    return { reasoning, content, calls, finish, usage, seed, fingerprint };
  }

  static fromData(data) {
    const answer = new Answer();
    answer.reasoning = answer.#count(text(data?.reasoning));
    answer.content = answer.#count(text(data?.content));
    if (Array.isArray(data?.calls)) {
      answer.calls = data.calls.slice(0, CALLS_MAX).map((call) => ({
        id: text(call?.id),
        name: text(call?.name),
        arguments: text(call?.arguments),
      }));
    }
    answer.finish = typeof data?.finish === "string" ? data.finish : null;
    answer.seed = typeof data?.seed === "number" ? data.seed : null;
    answer.fingerprint = text(data?.fingerprint);
    if (data?.usage) {
      const { prompt, completion, cached } = data.usage;
      answer.usage =
        { prompt: count(prompt), completion: count(completion), cached: count(cached) };
    }
    return answer;
  }

  #addCall(delta) {
    const index = Number.isInteger(delta?.index) ? delta.index : this.calls.length;
    if (index < 0 || index >= CALLS_MAX) throw new RangeError("too many calls in one answer");
    while (this.calls.length <= index) this.calls.push({ id: "", name: "", arguments: "" });
    const call = this.calls[index];
    call.id ||= text(delta?.id);
    call.name ||= text(delta?.function?.name);
    call.arguments += this.#count(text(delta?.function?.arguments));
  }

  #count(piece) {
    this.#chars += piece.length;
    if (this.#chars > CHARS_MAX) throw new RangeError("the answer is too long to be shown");
    return piece;
  }
}

const count = (value) => (Number.isSafeInteger(value) && value >= 0 ? value : 0);

function readUsage(usage) {
  return {
    prompt: count(usage.prompt_tokens),
    completion: count(usage.completion_tokens),
    cached: count(usage.prompt_tokens_details?.cached_tokens),
  };
}
