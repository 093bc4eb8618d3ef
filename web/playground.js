// web/playground.js
// The console's centre: one conversation with one server. Sends what was written, shows what comes,
// and keeps at most one answer running. Whatever happens, an answer ends as "done", "stopped" or
// "failed", and the page can be used again. Read next: client.js, turn_list.js, conversation.js.
import { faultLine } from "./answer_view.js";
import { CHAT_PATH, ServerFault, listModels, streamAnswer } from "./client.js";
import { Conversation } from "./conversation.js";
import { curlCommand } from "./curl.js";
import { byId, make } from "./dom.js";
import { localFault } from "./faults.js";
import { requestBody } from "./request.js";
import { store } from "./store.js";
import { TurnList } from "./turn_list.js";

export class Playground {
  #running = null; // {abort: AbortController, turn, started}
  #frame = 0;      // of the next drawing; 0: none is due

  // `settings`, `keyDialog`, `composer`: the other parts of the page.
  constructor({ texts, settings, keyDialog, composer }) {
    Object.assign(this, { texts, settings, keyDialog, composer });
    this.models = [];
    this.select = byId("model");
    this.select.addEventListener("change", () => this.#modelChosen());
    this.conversation = Conversation.fromJson(store.conversation);
    this.list = new TurnList({
      talk: byId("talk"), root: byId("turns"), latest: byId("latest"), welcome: byId("welcome"),
      handlers: {
        resend: (turn, text) => this.#resend(turn, text),
        regenerate: (turn) => this.#regenerate(turn),
        sendResults: (turn) => this.#sendResults(turn),
        curl: (turn) => this.curl(turn),
        useSeed: (seed) => this.#useSeed(seed),
        showField: (field) => this.settings.showField(field),
        enterKey: () => this.askForKey(),
      },
    });
    this.list.rebuild(this.conversation.turns, texts);
    addEventListener("pagehide", () => this.#save());
  }

  get running() {
    return this.#running !== null;
  }

  setTexts(texts) {
    this.texts = texts;
    this.list.rebuild(this.conversation.turns, texts);
    this.list.setBusy(this.running);
    this.#pageFault(null);
    this.#modelChosen();
  }

  // Asks which models there are, and for a key where one is needed. True when they are known.
  async loadModels() {
    try {
      this.#setModels(await listModels(store.key));
      this.#pageFault(null);
      return true;
    } catch (error) {
      const fault = this.#faultOf(error);
      if (fault.status === 401) return this.askForKey();
      this.#pageFault(fault, () => this.loadModels());
      return false;
    }
  }

  // True when there is a key that the server takes.
  async askForKey() {
    const given = await this.keyDialog.ask(async (key) => {
      try {
        this.#setModels(await listModels(key));
        store.key = key;
        byId("change-key").hidden = false;
        return "";
      } catch (error) {
        const fault = this.#faultOf(error);
        return fault.status === 401 ? this.texts.say("key-wrong")
          : fault.message || this.texts.say(`fault.${fault.kind ?? "server"}`);
      }
    });
    this.#pageFault(given || this.models.length > 0 ? null : { ...localFault(""), status: 401 });
    return given;
  }

  // False when nothing was sent: then what was written stays where it was.
  send(text) {
    if (this.running || text.trim() === "" || !this.#mayRun()) return false;
    const turn = this.conversation.addUser(text);
    this.list.add(turn, this.conversation.turns);
    this.#run();
    return true;
  }

  stop() {
    this.#running?.abort.abort();
  }

  newChat() {
    this.stop();
    this.conversation = new Conversation();
    this.list.rebuild([], this.texts);
    this.#pageFault(null);
    this.#save();
    this.say("status-new");
  }

  // The request that gave the answer `turn`, with the seed that was used; without a turn, the one
  // that `draft` would make. Null when a setting cannot be read.
  curl(turn, draft = "") {
    if (turn) {
      const { model, system, fields } = turn.request;
      const count = this.conversation.turns.indexOf(turn);
      const seed = turn.answer.seed ?? fields.seed;
      return this.#curl(model, { ...fields, ...(seed === undefined ? {} : { seed }) },
        this.conversation.messages(system, count));
    }
    const asked = this.settings.read();
    if (asked === null) return null;
    const messages = this.conversation.messages(asked.system);
    if (draft.trim() !== "" || messages.at(-1)?.role !== "user")
      messages.push({ role: "user", content: draft.trim() || this.texts.say("starter-1") });
    return this.#curl(this.select.value, asked.fields, messages);
  }

  // For who does not see the page.
  say(key, values) {
    byId("status").textContent = this.texts.say(key, values);
  }

  #curl(model, fields, messages) {
    return curlCommand({
      url: new URL(CHAT_PATH, document.baseURI).href,
      body: requestBody(model, fields, messages),
      needsKey: store.key !== "",
    });
  }

  #setModels(models) {
    this.models = models;
    const wanted = store.model;
    this.select.replaceChildren(...models.map(({ id }) => make("option", { value: id, text: id })));
    if (models.some(({ id }) => id === wanted)) this.select.value = wanted;
    this.select.disabled = models.length === 0;
    byId("change-key").hidden = store.key === "";
    this.#modelChosen();
  }

  #modelChosen() {
    const model = this.models.find(({ id }) => id === this.select.value);
    if (model) store.model = model.id;
    byId("max-tokens").placeholder = model?.context
      ? this.texts.say("of-context", { tokens: model.context }) : this.texts.say("to-the-end");
  }

  #useSeed(seed) {
    this.settings.set("seed", String(seed));
    this.say("seed-used", { seed: String(seed) });
  }

  #regenerate(turn) {
    this.#runFrom(this.conversation.turns.indexOf(turn));
  }

  #resend(turn, text) {
    this.#runFrom(this.conversation.turns.indexOf(turn), text);
  }

  #sendResults(turn) {
    this.#runFrom(this.conversation.turns.indexOf(turn) + 1);
  }

  // Drops the turns from `index` on, says `text` instead if there is one, and asks for an answer.
  #runFrom(index, text = null) {
    if (this.running || index < 0 || !this.#mayRun()) return;
    this.conversation.cut(index);
    this.list.keepOnly(this.conversation.turns);
    if (text !== null) this.list.add(this.conversation.addUser(text), this.conversation.turns);
    this.list.focus(this.#run());
  }

  // Whether a request can be made; where it cannot, the page says why.
  #mayRun() {
    const local = (kind, todo) => {
      this.#pageFault(localFault(kind), todo);
      return false;
    };
    if (this.conversation.full) return local("full");
    if (this.select.value === "") return local("no-model", () => this.loadModels());
    this.asked = this.settings.read();
    if (this.asked === null) return local("form");
    this.#pageFault(null);
    return true;
  }

  // Asks for an answer to all that was said, with this.asked. Gives its turn at once.
  #run() {
    const { system, fields } = this.asked;
    const messages = this.conversation.messages(system);
    const turn = this.conversation.addAnswer({ model: this.select.value, system, fields });
    const running = { abort: new AbortController(), turn, started: performance.now() };
    this.#running = running;
    this.list.add(turn, this.conversation.turns);
    this.#setBusy(true);
    this.say("status-answering", { model: turn.request.model });
    this.#stream(running, messages).then((fault) => this.#ended(running, fault));
    return turn;
  }

  // The fault with which it ended, or null.
  async #stream({ abort, turn, started }, messages) {
    const since = () => (performance.now() - started) / 1000;
    try {
      await streamAnswer({
        body: requestBody(turn.request.model, turn.request.fields, messages),
        key: store.key,
        signal: abort.signal,
        onChunk: (chunk) => {
          turn.answer.add(chunk);
          if (turn.answer.empty) return;
          const now = since();
          turn.seconds = { first: turn.seconds?.first ?? now, last: now };
          this.#draw(turn);
        },
      });
      turn.state = "done";
      return null;
    } catch (error) {
      turn.state = abort.signal.aborted ? "stopped" : "failed";
      return abort.signal.aborted ? null : this.#faultOf(error);
    }
  }

  #ended(running, fault) {
    const { turn } = running;
    turn.fault = fault;
    this.#running = null;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#setBusy(false);
    this.list.update(turn);
    this.#save();
    if (turn.state === "stopped") this.say("status-stopped");
    if (turn.state === "done")
      this.say("status-done", { count: turn.answer.usage?.completion ?? 0 });
    if (fault?.status === 401)
      this.askForKey().then((given) => given && this.#regenerate(turn));
  }

  // At most once a frame, however many chunks come.
  #draw(turn) {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.list.update(turn);
    });
  }

  #setBusy(busy) {
    this.list.setBusy(busy);
    this.composer.setBusy(busy);
  }

  #faultOf(error) {
    if (error instanceof ServerFault) return error.fault;
    console.error(error); // a bug of this page
    return localFault("unreadable", String(error?.message ?? error));
  }

  #pageFault(fault, retry = null) {
    const line = byId("page-fault");
    line.hidden = fault === null;
    if (fault === null) return;
    const enterKey = () => this.askForKey();
    line.replaceChildren(...faultLine(fault, this.texts, { retry, enterKey }));
  }

  #save() {
    store.conversation = this.conversation.turns.length > 0 ? this.conversation.toJson() : "";
  }
}
