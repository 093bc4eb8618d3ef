// web/faults.js
// What went wrong, in one line, and what to do about it. The server's own words are kept, since
// they name the field and the value; this file adds the next step. Pure.

const SECONDS_MAX = 3600;

// Of an answer that is not 200, or of an error event: {status, message, param, code, requestId,
// retrySeconds}. `body` is text, which need not be JSON.
export function readFault(status, body, header = () => null) {
  let error = {};
  try {
    error = JSON.parse(body)?.error ?? {};
  } catch {
    // A proxy in between: its page is of no use here.
  }
  const string = (value) => (typeof value === "string" ? value : "");
  const wait = Number(header("Retry-After"));
  return {
    status,
    message: string(error.message),
    param: string(error.param),
    code: string(error.code),
    requestId: header("X-Request-Id") ?? "",
    retrySeconds: Number.isInteger(wait) && wait > 0 ? Math.min(wait, SECONDS_MAX) : 0,
  };
}

// What no server said: "unreachable" (no connection), "broken" (the stream ended too early),
// "unreadable" (what came is not what this API sends).
export const localFault = (kind, message = "") =>
  ({ status: 0, kind, message, param: "", code: "", requestId: "", retrySeconds: 0 });

// Fields of a request that stand in the form under another name.
const FORM_FIELDS = {
  messages: null,
  response_format: "format",
  max_completion_tokens: "max_tokens",
};

// Where in the form the fault is; null when it is not there.
export function formField(fault, form) {
  const field = fault.param.split(/[.[]/, 1)[0];
  if (field in FORM_FIELDS) return FORM_FIELDS[field];
  return field in form ? field : null;
}

// {text, advice, retry}: keys of texts.js for what happened (used when the server gave no words of
// its own) and for what to do; `retry`: whether sending the same again may help.
export function explain(fault, form) {
  const make = (text, advice, retry = false) => ({ text, advice, retry });
  if (fault.kind) return make(`fault.${fault.kind}`, `advice.${fault.kind}`, true);
  if (fault.status === 401) return make("fault.key", "advice.key");
  if (fault.status === 403) return make("fault.forbidden", "advice.key");
  if (fault.code === "context_length_exceeded") return make("fault.context", "advice.context");
  if (fault.code === "model_not_found") return make("fault.model", "advice.model");
  if (fault.status === 429 || fault.status === 503) return make("fault.busy", "advice.wait", true);
  if (fault.status === 504) return make("fault.deadline", "advice.deadline", true);
  if (fault.status >= 500) return make("fault.server", "advice.server", true);
  if (formField(fault, form)) return make("fault.request", "advice.field");
  return make("fault.request", "advice.request");
}
