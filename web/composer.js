// web/composer.js
// The box at the foot of the page: writing, sending, stopping.
import { byId } from "./dom.js";
import { growing, isSendKey } from "./text_box.js";

export class Composer {
  // `send(text)` gives false when nothing was sent; `stop()` stops what runs.
  connect({ send, stop }) {
    this.box = byId("message");
    this.sendButton = byId("send");
    this.stopButton = byId("stop");
    growing(this.box);
    const submit = () => {
      if (!send(this.box.value)) return;
      this.write("");
    };
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      submit();
    });
    this.box.addEventListener("keydown", (event) => {
      if (!isSendKey(event)) return;
      event.preventDefault();
      submit();
    });
    this.stopButton.addEventListener("click", stop);
  }

  get draft() {
    return this.box.value;
  }

  write(text) {
    this.box.value = text;
    this.box.dispatchEvent(new Event("input"));
  }

  focus() {
    this.box.focus();
  }

  // One of the two buttons shows; the focus does not vanish with the other.
  setBusy(busy) {
    const hidden = busy ? this.sendButton : this.stopButton;
    const had = document.activeElement === hidden;
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
    if (had) this.focus();
  }
}
