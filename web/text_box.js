// web/text_box.js
// What the boxes for messages have in common: they grow with their text, and Enter sends.

// The box is as high as its text from now on; the style says how high at most. For browsers without
// field-sizing.
export function growing(box) {
  if (CSS.supports("field-sizing", "content")) return;
  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
  };
  box.addEventListener("input", fit);
  fit();
}

// Enter alone. Not while an input method composes: there Enter ends a syllable, which Korean needs
// all the time (229 is what older browsers say then).
export function isSendKey(event) {
  return event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey &&
    !event.metaKey && !event.isComposing && event.keyCode !== 229;
}
