// web/main.js
// Puts the page together: texts, settings, key, composer, playground, in this order, and the few
// buttons of the bar. Read next: playground.js.
import { Composer } from "./composer.js";
import { byId, copyBy, make } from "./dom.js";
import { KeyDialog } from "./key_dialog.js";
import { Playground } from "./playground.js";
import { SettingsView } from "./settings_view.js";
import { store } from "./store.js";
import { LANGUAGE_NAMES, NEXT_LANGUAGE, Texts } from "./texts.js";

const THEMES = ["", "light", "dark"];

let texts = new Texts(document.documentElement.lang);
texts.apply(document);
const settings = new SettingsView({
  texts,
  kept: store.form,
  onChange: (values) => { store.form = values; },
});
const keyDialog = new KeyDialog(texts);
const composer = new Composer();
const playground = new Playground({ texts, settings, keyDialog, composer });
composer.connect({
  send: (text) => playground.send(text),
  stop: () => playground.stop(),
});

function showStarters() {
  const buttons = ["starter-1", "starter-2", "starter-3"].map((key) =>
    make("li", {}, make("button", {
      type: "button",
      text: texts.say(key),
      on: { click: () => { composer.write(texts.say(key)); composer.focus(); } },
    })));
  byId("starters").replaceChildren(...buttons);
}

function showLanguageButton() {
  const next = NEXT_LANGUAGE[texts.language];
  const button = byId("language");
  button.textContent = LANGUAGE_NAMES[next];
  button.lang = next;
  button.title = texts.say(next === "ko" ? "to-korean" : "to-english");
}

function setLanguage(language) {
  store.language = language;
  texts = new Texts(language);
  texts.apply(document);
  settings.setTexts(texts);
  keyDialog.texts = texts;
  playground.setTexts(texts);
  showBar();
}

function showTheme() {
  const theme = THEMES.includes(store.theme) ? store.theme : "";
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const button = byId("theme");
  const label = texts.say(`theme-${theme || "system"}`);
  button.setAttribute("aria-label", label);
  button.title = label;
}

function nextTheme() {
  store.theme = THEMES[(THEMES.indexOf(store.theme) + 1) % THEMES.length];
  showTheme();
}

// Names for those buttons whose text is not always shown.
function showBar() {
  showLanguageButton();
  showTheme();
  showStarters();
  for (const [id, key] of [["new-chat", "new-chat"], ["settings-button", "settings"]]) {
    byId(id).setAttribute("aria-label", texts.say(key));
    byId(id).title = texts.say(key);
  }
}

showBar();
byId("language").addEventListener("click", () => setLanguage(NEXT_LANGUAGE[texts.language]));
byId("theme").addEventListener("click", nextTheme);
byId("new-chat").addEventListener("click", () => {
  playground.newChat();
  composer.focus();
});
byId("change-key").addEventListener("click", () => playground.askForKey());
byId("curl").addEventListener("click", () => {
  const command = playground.curl(null, composer.draft);
  if (command !== null) copyBy(byId("curl"), command, texts);
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  composer.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing && playground.running) playground.stop();
});

await playground.loadModels();
if (!keyDialog.dialog.open && matchMedia("(hover: hover)").matches) composer.focus();
