// web/turn_list.js
// The conversation on the page: one view a turn, and what of it is in sight. The one idea: who
// reads at the end stays at the end; who has scrolled up is left in peace and offered a way back.
import { AnswerView } from "./answer_view.js";
import { UserView } from "./user_view.js";

const NEAR_END_PIXELS = 48;

export class TurnList {
  #views = new Map(); // turn -> view
  #busy = false;
  #following = true;

  // `talk` scrolls, `root` holds the turns, `latest` leads back to the end, `welcome` shows while
  // there is no turn. handlers: of user_view.js and answer_view.js.
  constructor({ talk, root, latest, welcome, handlers }) {
    Object.assign(this, { talk, root, latest, welcome, handlers });
    talk.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    latest.addEventListener("click", () => this.toEnd());
    new ResizeObserver(() => this.#follow()).observe(talk);
  }

  // Shows these turns and no others.
  rebuild(turns, texts) {
    this.texts = texts;
    this.#views.clear();
    this.root.replaceChildren();
    for (const turn of turns) this.#addView(turn);
    this.#settle(turns);
  }

  // Shows a turn that has come; the end comes into sight.
  add(turn, turns) {
    const view = this.#addView(turn);
    this.#settle(turns);
    this.toEnd();
    return view;
  }

  // Lets go of every turn that is not among these.
  keepOnly(turns) {
    const kept = new Set(turns);
    for (const [turn, view] of this.#views) {
      if (kept.has(turn)) continue;
      view.node.remove();
      this.#views.delete(turn);
    }
    this.#settle(turns);
  }

  update(turn) {
    this.#views.get(turn)?.update();
    this.#follow();
  }

  setBusy(busy) {
    this.#busy = busy;
    for (const view of this.#views.values()) view.setBusy(busy);
  }

  // For who has just removed what had the focus.
  focus(turn) {
    const node = this.#views.get(turn)?.node;
    if (!node) return;
    node.tabIndex = -1;
    node.focus({ preventScroll: true });
  }

  toEnd() {
    this.#following = true;
    this.#follow();
  }

  #addView(turn) {
    const { texts, handlers } = this;
    const View = turn.kind === "user" ? UserView : AnswerView;
    const view = new View({ turn, texts, handlers });
    view.setBusy(this.#busy);
    this.#views.set(turn, view);
    this.root.append(view.node);
    return view;
  }

  // Calls before the last turn are answered.
  #settle(turns) {
    this.welcome.hidden = turns.length > 0;
    for (const turn of turns.slice(0, -1)) this.#views.get(turn)?.calls?.setAnswered();
    this.#follow();
  }

  #onScroll() {
    const { scrollTop, clientHeight, scrollHeight } = this.talk;
    this.#following = scrollTop + clientHeight >= scrollHeight - NEAR_END_PIXELS;
    this.latest.hidden = this.#following;
  }

  #follow() {
    if (this.#following) this.talk.scrollTop = this.talk.scrollHeight;
  }
}
