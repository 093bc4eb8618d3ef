// tests/browser/console.js
// What the browser tests share: a server as a child process, Chromium, and a page that watches for
// what must never happen (an error in the page, a request to anyone else).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.PLUMB_BROWSER_MODULES}/`);
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const WAIT_MS = 15_000;

// The address of a server that runs until `stop` is called.
export async function startScripted(...flags) {
  const child = spawn(process.env.PLUMB_SCRIPTED_SERVER, flags,
    { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended: ${code}`)));
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return {
    url,
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}

export async function startBrowser() {
  return chromium.launch({
    executablePath: process.env.PLUMB_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

// With PLUMB_WEB the page's files come from that folder, so that a change shows without a build;
// headers are still the server's.
async function serveFromFolder(page, url) {
  const folder = process.env.PLUMB_WEB;
  if (!folder) return;
  const ours = (address) => address.href === url || address.pathname.startsWith("/console/");
  await page.route(ours, async (route) => {
    const name = basename(new URL(route.request().url()).pathname) || "index.html";
    const response = await route.fetch();
    await route.fulfill({ response, status: 200, body: readFileSync(join(folder, name)) });
  });
}

// Opens `url` in a context of its own. `expected`: what the browser may print as errors (it prints
// every answer that is not 200). `close` checks that nothing happened that must not.
export async function openConsole(browser, url, { expected = [], ...options } = {}) {
  const context = await browser.newContext({
    locale: "en-US", viewport: { width: 1100, height: 800 }, ...options,
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const errors = [];
  const strangers = [];
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    if (!expected.some((pattern) => pattern.test(message.text()))) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) strangers.push(request.url());
  });
  await serveFromFolder(page, url);
  await page.goto(url);
  const close = async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
    assert.deepEqual(errors, []);
    assert.deepEqual(strangers, []);
  };
  return { page, close };
}

export const messageBox = (page) => page.locator("#message");
export const lastAnswer = (page) => page.locator(".turn.answer").last();

// Sends by Enter.
export async function send(page, text) {
  await messageBox(page).fill(text);
  await messageBox(page).press("Enter");
}

// Until the last answer has ended, however it did.
export async function ended(page) {
  await page.locator(".turn.answer:last-child[aria-busy=false]").waitFor();
  return lastAnswer(page);
}

export async function ask(page, text) {
  await send(page, text);
  return ended(page);
}

export const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

// What keeps people from using the page as it is now, by axe-core: [rule: elements].
export async function barriers(page) {
  await page.evaluate(() =>
    Promise.all(document.getAnimations().map((animation) => animation.finish())));
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}
