// web/user_view.js
// One question on the page, and the box in which it is changed and sent again.
import { copyBy, make } from "./dom.js";
import { growing, isSendKey } from "./text_box.js";

export class UserView {
  // handlers: {resend(turn, text)}
  constructor({ turn, texts, handlers }) {
    this.turn = turn;
    this.texts = texts;
    this.handlers = handlers;
    this.words = make("div", { class: "said", text: turn.text });
    this.editButton = make("button", {
      type: "button", class: "quiet", text: texts.say("edit"), on: { click: () => this.#edit() },
    });
    const copy = make("button", {
      type: "button", class: "quiet", text: texts.say("copy"),
      on: { click: () => copyBy(copy, turn.text, texts) },
    });
    this.actions = make("div", { class: "actions" }, this.editButton, copy);
    this.head = make("div", { class: "turn-head" },
      make("h2", { class: "who", text: texts.say("you") }), this.actions);
    this.node = make("li", { class: "turn user" }, this.head, this.words);
  }

  update() {}

  // While something is answered nothing is sent again.
  setBusy(busy) {
    this.editButton.disabled = busy;
  }

  #edit() {
    const { texts } = this;
    const box = make("textarea", { value: this.turn.text, "aria-label": texts.say("edit") });
    const send = make("button", { type: "submit", class: "primary", text: texts.say("resend") });
    const cancel = make("button", { type: "button", class: "quiet", text: texts.say("cancel") });
    const form = make("form", { class: "edit" }, box, make("div", { class: "row" }, send, cancel));
    const close = () => {
      form.replaceWith(this.words);
      this.head.append(this.actions);
      this.editButton.focus();
    };
    const submit = () => {
      if (box.value.trim() === "" || this.editButton.disabled) return;
      this.handlers.resend(this.turn, box.value);
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        close();
      } else if (event.target === box && isSendKey(event)) {
        event.preventDefault();
        submit();
      }
    });
    cancel.addEventListener("click", close);
    this.actions.remove();
    this.words.replaceWith(form);
    growing(box);
    box.focus();
  }
}
