// tests/clients/node/server.js
// A plumb server of v41-mini, which thinks and calls tools, as a child process; and the SDKs, from
// the folder where run.sh has installed them.
import { spawn } from "node:child_process";
import { createServer as createHttpServer } from "node:http";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

export const MODEL = "v41-mini";
export const KEY = "a-key-of-the-node-tests";
export const load = createRequire(`${process.env.PLUMB_NODE_MODULES}/`);

const START_SECONDS_MAX = 120;

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

// Its address, until `stop` is called; throws when it is not ready in time.
export async function startServer(...flags) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(process.env.PLUMB_BINARY,
    ["serve", "--model", MODEL, "--host", "127.0.0.1", "--port", String(port), ...flags],
    { stdio: "ignore", env: { ...process.env, PLUMB_API_KEY: KEY } });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill();
    await ended;
  };
  const deadline = Date.now() + START_SECONDS_MAX * 1000;
  while (Date.now() < deadline && child.exitCode === null) {
    const ready = await fetch(`${url}/ready`).catch(() => null);
    if (ready?.ok) return { url, stop };
    await wait(20);
  }
  await stop();
  throw new Error(`no server within ${START_SECONDS_MAX} s`);
}

// What the server at `url` answers, as if it took long: status 200 and empty lines, then the body,
// be it an answer or an error.
export async function startSlow(url) {
  const slow = createHttpServer(async (request, response) => {
    const body = [];
    for await (const piece of request) body.push(piece);
    const { host, connection, "content-length": length, ...headers } = request.headers;
    response.writeHead(200, { "Content-Type": "application/json" });
    response.write("\n");
    const answer = await fetch(`${url}${request.url}`,
      { method: request.method, headers, body: Buffer.concat(body) });
    response.write("\n");
    response.end(await answer.text());
  });
  await new Promise((resolve) => slow.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${slow.address().port}`, stop: () => slow.close() };
}
