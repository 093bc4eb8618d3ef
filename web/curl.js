// web/curl.js
// A request as a command for a POSIX shell. The one idea: everything that was typed stands between
// single quotes, where a shell reads no sign but the quote itself. A key is never written, only the
// name of the variable that holds it. Pure.

// `text` as one word.
export function shellWord(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

// `body` is an object; with `needsKey` the key comes from $PLUMB_API_KEY.
export function curlCommand({ url, body, needsKey }) {
  const flags = [shellWord(url), `-H ${shellWord("Content-Type: application/json")}`];
  if (needsKey) flags.push(`-H "Authorization: Bearer $PLUMB_API_KEY"`);
  flags.push(`-d ${shellWord(JSON.stringify(body, null, 2))}`);
  return `curl -N ${flags.join(" \\\n  ")}`;
}
