// web/key_dialog.js
// Asks for the key where the server wants one. The key goes to the server and into sessionStorage,
// which ends with the tab; it is in no address, no cookie and nothing that is copied.
import { byId, showOrHide } from "./dom.js";

// What a header can carry.
const KEY = /^[\x21-\x7e]{1,512}$/;

export class KeyDialog {
  #checking = false;
  #settle = null;

  constructor(texts) {
    this.texts = texts;
    this.dialog = byId("key-dialog");
    this.input = byId("key-input");
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    byId("key-cancel").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => {
      this.input.value = "";
      this.#settle?.(false);
    });
  }

  // True when a key was entered for which `check(key)` gave no text; false when there was none in
  // the end. What `check` gives is said beside the box.
  ask(check) {
    this.#settle?.(false);
    this.check = check;
    this.#say("");
    if (!this.dialog.open) this.dialog.showModal();
    this.input.focus();
    return new Promise((resolve) => { this.#settle = resolve; });
  }

  async #submit() {
    const key = this.input.value.trim();
    if (this.#checking) return;
    if (!KEY.test(key)) {
      this.#say(this.texts.say("key-signs"));
      return;
    }
    this.#checking = true;
    const fault = await this.check(key);
    this.#checking = false;
    this.#say(fault);
    if (fault) {
      this.input.select();
      return;
    }
    this.#settle?.(true);
    this.#settle = null;
    this.dialog.close();
  }

  #say(text) {
    showOrHide(byId("key-fault"), text);
    this.input.setAttribute("aria-invalid", String(text !== ""));
  }
}
