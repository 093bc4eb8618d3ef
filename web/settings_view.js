// web/settings_view.js
// The form beside the conversation: what is asked for besides the words. It is kept for as long as
// the tab lives, and says beside a field why that cannot be read.
import { byId, make } from "./dom.js";
import { DEFAULTS, formatHasSource, readForm } from "./request.js";

// Below this width the form lies over the conversation (settings.css has the same number).
const NARROW = matchMedia("(max-width: 68rem)");

export class SettingsView {
  // `kept` is a form as it was kept; `onChange` gets the form whenever it has changed.
  constructor({ texts, kept, onChange }) {
    Object.assign(this, { texts, onChange });
    this.panel = byId("settings");
    this.form = byId("form");
    this.button = byId("settings-button");
    for (const [field, value] of Object.entries({ ...DEFAULTS, ...kept }))
      if (field in DEFAULTS && typeof value === "string") this.#element(field).value = value;
    this.button.addEventListener("click", () => (this.panel.hidden ? this.open() : this.close()));
    byId("settings-close").addEventListener("click", () => this.close());
    this.form.addEventListener("input", (event) => this.#changed(event.target));
    this.form.addEventListener("reset", () => setTimeout(() => this.#wasReset()));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation();
      this.close();
    });
    NARROW.addEventListener("change", () => this.#fitWidth());
    this.#showDependent();
  }

  get values() {
    return Object.fromEntries(
      Object.keys(DEFAULTS).map((field) => [field, this.#element(field).value]));
  }

  // {system, fields}, or null when a field cannot be read: then that is shown.
  read() {
    const { fields, faults } = readForm(this.values);
    this.#clearFaults();
    for (const { field, reason, detail } of faults)
      this.#showFault(field, this.texts.say(`fault.${reason}`, { detail }));
    if (faults.length === 0) return { system: this.values.system.trim(), fields };
    this.showField(faults[0].field);
    return null;
  }

  set(field, value) {
    this.#element(field).value = value;
    this.#changed(this.#element(field));
  }

  // Opens the form at this field.
  showField(field) {
    this.open();
    this.#element(field).focus();
  }

  open() {
    this.panel.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.#fitWidth();
    byId("settings-title").focus({ preventScroll: true });
  }

  close() {
    this.panel.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    this.#fitWidth();
    this.button.focus();
  }

  setTexts(texts) {
    this.texts = texts;
    this.#clearFaults();
  }

  #element(field) {
    return this.form.elements.namedItem(field);
  }

  // What lies under the open form cannot be reached.
  #fitWidth() {
    byId("main").inert = NARROW.matches && !this.panel.hidden;
  }

  #changed(element) {
    this.#clearFault(element);
    this.#showDependent();
    this.onChange(this.values);
  }

  #wasReset() {
    this.#clearFaults();
    this.#showDependent();
    this.onChange(this.values);
  }

  #showDependent() {
    byId("format-source").hidden = !formatHasSource(this.#element("format").value);
    byId("tool-choice").hidden = this.#element("tools").value.trim() === "";
  }

  #showFault(field, text) {
    const element = this.#element(field);
    const id = `fault-of-${field}`;
    element.setAttribute("aria-invalid", "true");
    element.setAttribute("aria-describedby", id);
    element.after(make("span", { class: "field-fault", id, text }));
  }

  #clearFault(element) {
    if (!element.hasAttribute("aria-invalid")) return;
    byId(element.getAttribute("aria-describedby"))?.remove();
    element.removeAttribute("aria-invalid");
    element.removeAttribute("aria-describedby");
  }

  #clearFaults() {
    for (const element of this.form.querySelectorAll("[aria-invalid]")) this.#clearFault(element);
  }
}
