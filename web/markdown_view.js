// web/markdown_view.js
// Shows Markdown that grows. The one idea: a block that has not changed keeps its nodes, so that an
// answer of any length costs only its last block at each step, and what is selected stays selected.
import { copyBy, make, showText } from "./dom.js";
import { parseBlocks } from "./markdown.js";

export class MarkdownView {
  #text = "";
  #shown = []; // [{block, source, node}]

  constructor(root, texts) {
    this.root = root;
    this.texts = texts;
  }

  // Shows `text`, which usually begins with what is shown already.
  update(text) {
    if (text === this.#text) return;
    // What comes can change the last block, and the one before it: a line that is not complete may
    // yet belong to that.
    const grown = text.startsWith(this.#text);
    const kept = grown ? Math.max(0, this.#shown.length - 2) : 0;
    const from = kept < this.#shown.length ? this.#shown[kept].block.start : 0;
    const blocks = parseBlocks(text, from);
    blocks.forEach((block, i) => this.#show(kept + i, block, text.slice(block.start, block.end)));
    for (const { node } of this.#shown.splice(kept + blocks.length)) node.remove();
    this.#text = text;
  }

  #show(index, block, source) {
    const old = this.#shown[index];
    if (old && old.source === source && old.block.kind === block.kind) {
      old.block = block;
      return;
    }
    if (old && block.kind === "code" && old.block.kind === "code" &&
        old.block.language === block.language) {
      showText(old.node.querySelector("code"), block.text);
      Object.assign(old, { block, source });
      return;
    }
    const node = render(block, this.texts);
    if (old) old.node.replaceWith(node);
    else this.root.append(node);
    this.#shown[index] = { block, source, node };
  }
}

function render(block, texts) {
  if (block.kind === "code") return renderCode(block, texts);
  if (block.kind === "list") return renderList(block.items);
  if (block.kind === "rule") return make("hr");
  // The page has its own headings of levels 1 and 2.
  if (block.kind === "heading")
    return make(`h${Math.min(6, block.level + 2)}`, {}, ...renderInlines(block.inlines));
  return make("p", {}, ...renderInlines(block.inlines));
}

const TAGS = { code: "code", bold: "strong", emphasis: "em" };

function renderInlines(inlines) {
  return inlines.map(({ kind, text }) =>
    kind === "text" ? document.createTextNode(text) : make(TAGS[kind], { text }));
}

function renderCode(block, texts) {
  const code = make("code", { text: block.text });
  const copy = make("button", {
    type: "button",
    class: "quiet",
    text: texts.say("copy"),
    "aria-label": texts.say("copy-code"),
    on: { click: () => copyBy(copy, code.textContent, texts) },
  });
  const head = make("div", { class: "code-head" }, make("span", { text: block.language }), copy);
  // What scrolls must be reached by keyboard.
  return make("div", { class: "code-block" }, head, make("pre", { tabIndex: 0 }, code));
}

function renderList(items) {
  const root = make("div", { class: "list" });
  const open = []; // the lists around the item: [{list, ordered}]
  for (const { depth, ordered, number, inlines } of items) {
    open.length = Math.min(open.length, depth + 1);
    let here = open[depth];
    if (!here || here.ordered !== ordered) {
      const list = make(ordered ? "ol" : "ul");
      if (ordered && number !== 1) list.start = number;
      const parent = depth > 0 ? open[depth - 1].list.lastElementChild : root;
      parent.append(list);
      here = { list, ordered };
      open[depth] = here;
    }
    here.list.append(make("li", {}, ...renderInlines(inlines)));
  }
  return root;
}
