// web/store.js
// What outlives a reload: in sessionStorage what was said, asked for and the key, which end with
// the tab; in localStorage light or dark and the language (read by appearance.js too). Storage may
// be full or switched off: then nothing is kept, and all else works.

function access(storage, work) {
  try {
    return work(storage());
  } catch {
    return null;
  }
}

const tab = (work) => access(() => sessionStorage, work);
const browser = (work) => access(() => localStorage, work);
const set = (name, value) => (storage) =>
  value ? storage.setItem(`plumb.${name}`, value) : storage.removeItem(`plumb.${name}`);

export const store = {
  get key() { return tab((storage) => storage.getItem("plumb.key")) ?? ""; },
  set key(value) { tab(set("key", value)); },

  get model() { return tab((storage) => storage.getItem("plumb.model")) ?? ""; },
  set model(value) { tab(set("model", value)); },

  get form() {
    const form = tab((storage) => JSON.parse(storage.getItem("plumb.form")));
    return form && typeof form === "object" ? form : {};
  },
  set form(values) { tab(set("form", JSON.stringify(values))); },

  get conversation() { return tab((storage) => storage.getItem("plumb.conversation")); },
  // What is too long to be kept leaves nothing, rather than what was said before.
  set conversation(json) {
    if (tab(set("conversation", json)) === null) tab(set("conversation", ""));
  },

  set language(value) { browser(set("language", value)); },
  // "" follows the system.
  get theme() { return browser((storage) => storage.getItem("plumb.theme")) ?? ""; },
  set theme(value) { browser(set("theme", value)); },
};
