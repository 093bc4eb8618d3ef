// web/answer_view.js
// One answer on the page while it grows and after: thoughts, text, calls of tools with boxes for
// their results, what went wrong, the facts, and what can be done with it.
import { CallsView } from "./calls_view.js";
import { tokensPerSecond } from "./conversation.js";
import { copyBy, make, showText } from "./dom.js";
import { explain, formField } from "./faults.js";
import { MarkdownView } from "./markdown_view.js";
import { DEFAULTS } from "./request.js";

export class AnswerView {
  // handlers: {regenerate(turn), sendResults(turn), curl(turn), useSeed(seed), showField(field),
  // enterKey()}
  constructor({ turn, texts, handlers }) {
    Object.assign(this, { turn, texts, handlers });
    const model = String(turn.request.model ?? "");
    const who = make("h2", { class: "who" },
      make("span", { class: "unseen", text: texts.say("answer-of", { model }) }),
      make("span", { "aria-hidden": "true", text: model }));
    this.summary = make("summary");
    this.thought = make("div", { class: "thought" });
    this.thinking =
      make("details", { class: "thinking", hidden: true }, this.summary, this.thought);
    // Once opened or closed by hand, it stays so.
    this.summary.addEventListener("click", () => { this.thinkingByHand = true; });
    this.words = make("div", { class: "words" });
    this.markdown = new MarkdownView(this.words, texts);
    this.calls = new CallsView({ turn, texts, send: () => handlers.sendResults(turn) });
    this.waiting = make("p", { class: "waiting" },
      make("span", { class: "unseen", text: texts.say("waiting") }));
    this.fault = make("p", { class: "fault", role: "alert", hidden: true });
    this.facts = make("p", { class: "facts", hidden: true });
    this.actions = make("div", { class: "actions", hidden: true });
    this.node = make("li", { class: "turn answer" }, who, this.thinking, this.words,
      this.calls.node, this.waiting, this.fault,
      make("div", { class: "turn-foot" }, this.facts, this.actions));
    this.#makeActions();
    this.update();
  }

  // Shows what there is now; turn.state is "running", "done", "stopped" or "failed".
  update() {
    const { answer, state } = this.turn;
    const running = state === "running";
    this.node.setAttribute("aria-busy", String(running));
    this.waiting.hidden = !running || !answer.empty;
    this.#updateThinking(running);
    this.markdown.update(answer.content);
    this.calls.update();
    if (running) return;
    this.#updateFault();
    this.#updateFacts();
    this.actions.hidden = false;
  }

  // While something is answered nothing else is sent.
  setBusy(busy) {
    this.regenerate.disabled = busy;
    this.calls.setBusy(busy);
  }

  #updateThinking(running) {
    const { answer } = this.turn;
    this.thinking.hidden = answer.reasoning === "";
    if (this.thinking.hidden) return;
    const now = running && answer.content === "" && answer.calls.length === 0;
    showText(this.summary, this.texts.say(now ? "thinking-now" : "thought"));
    showText(this.thought, answer.reasoning);
    if (!this.thinkingByHand) this.thinking.open = now;
  }

  #makeActions() {
    const { texts, turn, handlers } = this;
    const action = (key, click) => {
      const button = make("button", { type: "button", class: "quiet", text: texts.say(key) });
      button.addEventListener("click", () => click(button));
      this.actions.append(button);
      return button;
    };
    action("copy", (button) => copyBy(button, turn.answer.content, texts));
    this.regenerate = action("regenerate", () => handlers.regenerate(turn));
    action("curl", (button) => copyBy(button, handlers.curl(turn), texts));
  }

  #updateFault() {
    const { turn, texts, handlers } = this;
    this.fault.hidden = !turn.fault;
    if (!turn.fault) return;
    this.fault.replaceChildren(...faultLine(turn.fault, texts, {
      retry: () => handlers.regenerate(turn),
      showField: handlers.showField,
      enterKey: handlers.enterKey,
    }));
  }

  #updateFacts() {
    const { turn, texts } = this;
    const { answer } = turn;
    const parts = [];
    const add = (key, values) => parts.push(make("span", { text: texts.say(key, values) }));
    if (turn.state === "stopped") add("fact-stopped");
    if (answer.usage) {
      const speed = tokensPerSecond(turn);
      add("fact-tokens", { count: answer.usage.completion });
      if (speed !== null) add("fact-speed", { speed: texts.number(speed, 1) });
    }
    if (turn.seconds) add("fact-first", { seconds: texts.number(turn.seconds.first, 2) });
    if (answer.usage) {
      const { prompt, cached } = answer.usage;
      add(cached > 0 ? "fact-prompt-cached" : "fact-prompt", { count: prompt, cached });
    }
    if (answer.seed !== null) parts.push(this.#seedButton(answer.seed));
    if (answer.finish === "length") add("fact-length");
    this.facts.replaceChildren(...parts);
    this.facts.hidden = parts.length === 0;
  }

  #seedButton(seed) {
    return make("button", {
      type: "button",
      class: "quiet seed",
      text: this.texts.say("fact-seed", { seed: String(seed) }),
      title: this.texts.say("use-seed"),
      on: { click: () => this.handlers.useSeed(seed) },
    });
  }
}

// The nodes of one line: what happened, what to do, and a button that does it.
export function faultLine(fault, texts, { retry, showField, enterKey }) {
  const { text, advice, retry: mayRetry } = explain(fault, DEFAULTS);
  const what = fault.message || texts.say(text);
  const wait = advice === "advice.wait" && fault.retrySeconds > 0;
  const todo = wait ? texts.say("advice.wait-seconds", { seconds: fault.retrySeconds })
    : texts.say(advice, { id: fault.requestId });
  const line = [`${what}${/[.!?]$/.test(what) ? "" : "."} ${todo} `];
  const button = (key, click) =>
    line.push(make("button", { type: "button", text: texts.say(key), on: { click } }));
  const field = formField(fault, DEFAULTS);
  if (fault.status === 401 && enterKey) button("enter-key", enterKey);
  else if (advice === "advice.field" && showField) button("go-to-field", () => showField(field));
  else if (mayRetry && retry) button("retry", retry);
  return line;
}
