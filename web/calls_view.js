// web/calls_view.js
// The calls of tools in one answer: name and arguments as they come, then a box for each result,
// since here a person is the tool.
import { make, showText } from "./dom.js";
import { growing } from "./text_box.js";

export class CallsView {
  #cards = []; // [{code, node, box}]
  #finished = false;

  // `send` is called when the results, which are then in turn.results, are to be sent.
  constructor({ turn, texts, send }) {
    this.turn = turn;
    this.texts = texts;
    this.sendButton = make("button", {
      type: "submit", class: "primary", text: texts.say("send-results"), hidden: true,
    });
    this.node = make("form", { class: "calls", hidden: true }, this.sendButton);
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!this.sendButton.disabled) send();
    });
  }

  update() {
    const { answer } = this.turn;
    this.node.hidden = answer.calls.length === 0;
    answer.calls.forEach((call, i) => {
      if (!this.#cards[i]) this.#addCard(call);
      const text = answer.callsWhole ? pretty(call.arguments) : call.arguments;
      showText(this.#cards[i].code, text);
    });
    if (this.turn.state === "running" || this.#finished || answer.calls.length === 0) return;
    this.#finished = true;
    if (answer.callsWhole) this.#askForResults();
    else this.node.append(make("p", { class: "note", text: this.texts.say("call-cut") }));
  }

  setBusy(busy) {
    this.sendButton.disabled = busy;
  }

  // After they have been sent they are shown, and no more changed.
  setAnswered() {
    this.sendButton.hidden = true;
    for (const { box } of this.#cards) if (box) box.readOnly = true;
  }

  #addCard(call) {
    const code = make("code");
    const title = make("h3", {}, make("code", { text: call.name }));
    title.setAttribute("aria-label", this.texts.say("call", { name: call.name }));
    const node = make("section", { class: "call" }, title, make("pre", { tabIndex: 0 }, code));
    this.sendButton.before(node);
    this.#cards.push({ code, node, box: null });
  }

  #askForResults() {
    this.turn.answer.calls.forEach((call, i) => {
      const card = this.#cards[i];
      card.box = make("textarea", {
        class: "code", rows: 1, spellcheck: false, value: this.turn.results[i] ?? "",
        placeholder: this.texts.say("result-hint"),
        "aria-label": this.texts.say("result", { name: call.name }),
        on: { input: () => { this.turn.results[i] = card.box.value; } },
      });
      card.node.append(card.box);
      growing(card.box);
    });
    this.sendButton.hidden = false;
  }
}

// Arguments for people, where they are the JSON that they should be.
function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
