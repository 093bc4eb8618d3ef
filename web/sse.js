// web/sse.js
// Server-sent events out of text that comes in any pieces. The one idea: lines are cut by index
// and the rest is kept, so that the events do not depend on how the text was cut. Pure.

const EVENT_CHARS_MAX = 8 << 20;

export class SseParser {
  #rest = "";       // what has not ended in a line yet
  #scanned = 0;     // of #rest: nothing here ends a line
  #afterCr = false; // a LF that comes first belongs to the CR before it
  #started = false; // a byte order mark may come before everything
  #data = [];
  #dataChars = 0;
  #event = "";

  // The events that end in `text`: [{event, data}], in order. Throws RangeError when one is too
  // long to be kept.
  push(text) {
    const events = [];
    let rest = this.#rest + this.#withoutHead(text);
    let start = 0;
    for (let at = this.#scanned; at < rest.length; ++at) {
      const code = rest.charCodeAt(at);
      if (code !== 10 && code !== 13) continue;
      this.#line(rest.slice(start, at), events);
      if (code === 13) {
        if (at + 1 === rest.length) this.#afterCr = true;
        else if (rest.charCodeAt(at + 1) === 10) ++at;
      }
      start = at + 1;
    }
    this.#rest = rest.slice(start);
    this.#scanned = this.#rest.length;
    if (this.#rest.length + this.#dataChars > EVENT_CHARS_MAX)
      throw new RangeError("an event is too long");
    return events;
  }

  #withoutHead(text) {
    if (text === "") return text;
    if (!this.#started && text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    this.#started = true;
    if (this.#afterCr && text.charCodeAt(0) === 10) text = text.slice(1);
    this.#afterCr = false;
    return text;
  }

  #line(line, events) {
    if (line === "") {
      if (this.#data.length > 0) events.push({ event: this.#event, data: this.#data.join("\n") });
      this.#data = [];
      this.#dataChars = 0;
      this.#event = "";
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment: the server lives
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "data") {
      this.#data.push(value);
      this.#dataChars += value.length;
    } else if (name === "event") {
      this.#event = value;
    }
  }
}
