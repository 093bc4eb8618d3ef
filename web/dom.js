// web/dom.js
// The few helpers with which every part of the page makes its nodes. The one idea: text becomes
// text nodes, never HTML, so nothing that a model or a user writes can be more than text.

// A new element with properties (`class`, `text`, `on` {event: listener}, attributes, and anything
// that the element itself has) and children.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else if (name === "on") listen(element, value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function listen(target, listeners) {
  for (const [event, listener] of Object.entries(listeners))
    target.addEventListener(event, listener);
}

// Of the one element with this id, which index.html has.
export const byId = (id) => document.getElementById(id);

// Makes `element` show `text`, and only adds where it begins with what is there: a selection in it
// lives on.
export function showText(element, text) {
  const node = element.firstChild;
  if (node?.nodeType !== Node.TEXT_NODE) {
    element.textContent = text;
  } else if (text.startsWith(node.data)) {
    if (text.length > node.data.length) node.appendData(text.slice(node.data.length));
  } else if (node.data !== text) {
    node.data = text;
  }
}

// Shows `text`, or hides the element where there is none.
export function showOrHide(element, text) {
  element.hidden = !text;
  element.textContent = text;
}

const FEEDBACK_MS = 1500;

// The modern way where the page may use it: over plain HTTP that is on the same machine only.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const focused = document.activeElement;
  const box = make("textarea", { class: "unseen", value: text });
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.select();
  const copied = document.execCommand("copy");
  box.remove();
  focused?.focus();
  if (!copied) throw new Error("the browser did not copy");
}

// Copies, and says on the button itself how that went.
export async function copyBy(button, text, texts) {
  const before = button.dataset.before ?? button.textContent;
  button.dataset.before = before;
  let key = "copied";
  try {
    await copy(text);
  } catch {
    key = "copy-failed";
  }
  button.textContent = texts.say(key);
  setTimeout(() => {
    button.textContent = before;
    delete button.dataset.before;
  }, FEEDBACK_MS);
}
