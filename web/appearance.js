// web/appearance.js
// Light or dark and the language, before the first paint: the only script that is no module, so
// that the page does not flash. What was chosen is kept; what was not follows the system.
"use strict";

{
  const root = document.documentElement;
  const stored = (name, known) => {
    try {
      const value = localStorage.getItem(`plumb.${name}`);
      return known.includes(value) ? value : null;
    } catch {
      return null; // storage may be switched off
    }
  };
  const preferred = () =>
    navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => ["en", "ko"].includes(tag));
  const theme = stored("theme", ["light", "dark"]);
  if (theme) root.dataset.theme = theme;
  root.lang = stored("language", ["en", "ko"]) ?? preferred() ?? "en";
}
