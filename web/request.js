// web/request.js
// From what the form holds to the fields of a request. A field left empty is not sent, so that the
// server's own default holds; a field that cannot be read is named, and nothing is sent. Pure.

// The form, as strings: the state of a page just opened.
export const DEFAULTS = Object.freeze({
  system: "",
  temperature: "",
  top_p: "",
  max_tokens: "",
  seed: "",
  thinking: "",
  reasoning_effort: "",
  format: "",
  format_source: "",
  tools: "",
  tool_choice: "",
  more: "",
});

// What each format's source is, and where it goes. Formats without one take no source.
const FORMATS = {
  json_object: null,
  json_schema: { field: "json_schema", read: readSchema },
  regex: { field: "regex", read: readSource },
  choice: { field: "choice", read: readLines },
  grammar: { field: "grammar", read: readSource },
};
export const formatHasSource = (format) => Boolean(FORMATS[format]);

// Thrown by the readers below; `detail` is for people, and may be empty.
class Fault extends Error {
  constructor(reason, detail = "") {
    super(reason);
    this.reason = reason;
    this.detail = detail;
  }
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function readNumber(value, min, max) {
  const number = NUMBER.test(value) ? Number(value) : NaN;
  if (!(number >= min && number <= max)) throw new Fault("number", `${min} – ${max}`);
  return number;
}

function readInteger(value, min, max) {
  const number = /^-?\d+$/.test(value) ? Number(value) : NaN;
  if (!(number >= min && number <= max)) throw new Fault("integer", `${min} – ${max}`);
  return number;
}

function readJson(value) {
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new Fault("json", error.message);
  }
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function readSchema(source) {
  const schema = readJson(source);
  if (!isObject(schema)) throw new Fault("object");
  return { name: "answer", schema };
}

function readSource(source) {
  if (source === "") throw new Fault("missing");
  return source;
}

function readLines(source) {
  const lines = source.split("\n").map((line) => line.trim()).filter(Boolean);
  if (lines.length === 0) throw new Fault("missing");
  return lines;
}

// A list of tools, one tool, or bare functions: each becomes what the API takes.
function readTools(value) {
  const given = readJson(value);
  const list = Array.isArray(given) ? given : [given];
  return list.map((tool) => {
    if (!isObject(tool)) throw new Fault("tools");
    if ("function" in tool || "type" in tool) return tool;
    return { type: "function", function: tool };
  });
}

function readMore(value) {
  const more = readJson(value);
  if (!isObject(more)) throw new Fault("object");
  for (const taken of ["messages", "stream", "n"])
    if (taken in more) throw new Fault("taken", taken);
  return more;
}

const INT32_MAX = 2 ** 31 - 1;

// One row a field: how its text is read into `body`.
const READERS = {
  temperature: (value, body) => { body.temperature = readNumber(value, 0, 2); },
  top_p: (value, body) => { body.top_p = readNumber(value, 0, 1); },
  max_tokens: (value, body) => { body.max_tokens = readInteger(value, 1, INT32_MAX); },
  seed: (value, body) => {
    body.seed = readInteger(value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  },
  thinking: (value, body) => { body.thinking = { type: value }; },
  reasoning_effort: (value, body) => {
    body.reasoning_effort = /^\d+$/.test(value) ? readInteger(value, 1, 100) : value;
  },
  tools: (value, body) => { body.tools = readTools(value); },
  tool_choice: (value, body) => { body.tool_choice = value; },
  more: (value, body) => { Object.assign(body, readMore(value)); },
};

// {fields, faults}: `fields` for requestBody; `faults` [{field, reason, detail}], empty when all
// could be read. Reasons are keys of texts.js, behind "fault.".
export function readForm(form) {
  const fields = {};
  const faults = [];
  const attempt = (field, read) => {
    try {
      read();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      faults.push({ field, reason: error.reason, detail: error.detail });
    }
  };
  for (const [field, read] of Object.entries(READERS)) {
    const value = (form[field] ?? "").trim();
    if (value !== "") attempt(field, () => read(value, fields));
  }
  if (!fields.tools) delete fields.tool_choice; // says something of nothing
  if (form.format) {
    const source = FORMATS[form.format];
    attempt("format_source", () => {
      fields.response_format = { type: form.format };
      if (source) fields.response_format[source.field] = source.read(form.format_source.trim());
    });
  }
  return { fields, faults };
}

export function requestBody(model, fields, messages) {
  return {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    ...fields,
  };
}
