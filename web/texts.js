// web/texts.js
// Every text of the page in every language: texts_en.js and texts_ko.js have the same keys. In a
// text {name} stands for a value. Pure but for Texts.apply, which writes them into the page.
import { ENGLISH } from "./texts_en.js";
import { KOREAN } from "./texts_ko.js";

const TABLES = { en: ENGLISH, ko: KOREAN };
export const NEXT_LANGUAGE = { en: "ko", ko: "en" };
export const LANGUAGE_NAMES = { en: "English", ko: "한국어" };

export class Texts {
  constructor(language) {
    this.language = language in TABLES ? language : "en";
    this.table = TABLES[this.language];
  }

  // The text of `key` with its values put in; numbers are written as the language has them.
  say(key, values = {}) {
    const text = this.table[key];
    if (text === undefined) throw new Error(`there is no text "${key}"`);
    return text.replace(/\{(\w+)\}/g, (_, name) => this.#value(values[name]));
  }

  // `value` with so many digits behind the point.
  number(value, digits = 0) {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return value.toLocaleString(this.language, options);
  }

  // Puts the texts where index.html says: data-text, data-label, data-placeholder.
  apply(document) {
    document.documentElement.lang = this.language;
    for (const element of document.querySelectorAll("[data-text]"))
      element.textContent = this.say(element.dataset.text);
    for (const element of document.querySelectorAll("[data-label]"))
      element.setAttribute("aria-label", this.say(element.dataset.label));
    for (const element of document.querySelectorAll("[data-placeholder]"))
      element.placeholder = this.say(element.dataset.placeholder);
  }

  #value(value) {
    return typeof value === "number" ? this.number(value) : String(value ?? "");
  }
}
