// web/client.js
// The two requests that the console makes, to the server that it came from and to no other: which
// models there are, and an answer as a stream. Everything that can go wrong ends as a ServerFault.
import { localFault, readFault } from "./faults.js";
import { SseParser } from "./sse.js";

const ERROR_CHARS_MAX = 1 << 16;

export class ServerFault extends Error {
  constructor(fault) {
    super(fault.message || fault.kind || String(fault.status));
    this.fault = fault;
  }
}

// Relative to the page, so that a proxy may put plumb under a folder.
export const CHAT_PATH = "v1/chat/completions";

function headers(key, more = {}) {
  return key ? { Authorization: `Bearer ${key}`, ...more } : more;
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", redirect: "error", ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ServerFault(localFault("unreachable"));
  }
  if (response.ok) return response;
  const body = await response.text().catch(() => "");
  const header = (name) => response.headers.get(name);
  throw new ServerFault(readFault(response.status, body.slice(0, ERROR_CHARS_MAX), header));
}

// [{id, context}]; context in tokens, 0 when the server does not say.
export async function listModels(key) {
  const response = await send("v1/models", { headers: headers(key) });
  const list = await response.json().catch(() => null);
  if (!Array.isArray(list?.data)) throw new ServerFault(localFault("unreadable"));
  return list.data
    .filter((model) => typeof model?.id === "string")
    .map((model) => ({ id: model.id, context: Number(model.context_length) || 0 }));
}

// Sends `body`; `onChunk` gets each chunk as it comes. Ends when the answer is complete. Throws
// ServerFault, or what `signal` aborts with.
export async function streamAnswer({ body, key, signal, onChunk }) {
  const response = await send(CHAT_PATH, {
    method: "POST",
    headers: headers(key, { "Content-Type": "application/json" }),
    body: JSON.stringify(body),
    signal,
  });
  const requestId = response.headers.get("X-Request-Id") ?? "";
  const reader = response.body.getReader();
  try {
    await readEvents(reader, signal, onChunk, requestId);
  } catch (error) {
    reader.cancel().catch(() => {}); // the server need not go on
    throw error;
  }
  // Nothing comes after the last event but the body's end, with which the connection is free again.
  reader.read().then(({ done }) => done || reader.cancel()).catch(() => {});
}

async function readEvents(reader, signal, onChunk, requestId) {
  const decoder = new TextDecoder();
  const parser = new SseParser();
  for (;;) {
    const piece = await reader.read().catch((error) => {
      if (signal?.aborted) throw error;
      throw new ServerFault({ ...localFault("broken"), requestId });
    });
    if (piece.done) throw new ServerFault({ ...localFault("broken"), requestId });
    for (const { data } of parse(parser, decoder.decode(piece.value, { stream: true }))) {
      if (data === "[DONE]") return;
      take(data, onChunk, requestId);
    }
  }
}

function parse(parser, text) {
  try {
    return parser.push(text);
  } catch {
    throw new ServerFault(localFault("unreadable"));
  }
}

function take(data, onChunk, requestId) {
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new ServerFault(localFault("unreadable"));
  }
  if (chunk?.error) {
    const status = chunk.error.code === "deadline_exceeded" ? 504 : 500;
    throw new ServerFault({ ...readFault(status, data), requestId });
  }
  try {
    onChunk(chunk);
  } catch (error) {
    throw new ServerFault({ ...localFault("unreadable", error.message), requestId });
  }
}
