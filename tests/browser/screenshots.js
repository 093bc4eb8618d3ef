// tests/browser/screenshots.js
// The pictures of docs/console.md: screenshots.js OUT. The console with real models, so that the
// rates on it are real; seeds are fixed, so the answers are the same each time. Each picture is
// small (FILE_BYTES_MAX), since it lies in the repository.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ask, lastAnswer, openConsole, startBrowser } from "./console.js";

const FILE_BYTES_MAX = 200_000;
const out = process.argv[2];

async function startPlumb(model) {
  const child = spawn(process.env.PLUMB_BINARY, ["serve", "--model", model, "--port", "0"],
    { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /serves .* on (http:\S+)/.exec(line)?.[1];
    if (!url) continue;
    child.stdout.resume();
    return {
      url: `${url}/`,
      stop: () => {
        child.kill("SIGTERM");
        return ended;
      },
    };
  }
  throw new Error(`plumb serve --model ${model} ended: ${await ended}`);
}

async function picture(page, name) {
  await page.mouse.move(0, 0);
  const path = join(out, `${name}.png`);
  await page.screenshot({ path });
  const { size } = statSync(path);
  assert.ok(size < FILE_BYTES_MAX, `${path} has ${size} bytes`);
  console.log(`${path} ${size}`);
}

async function fill(page, settings) {
  await page.locator("#settings-button").click();
  for (const [name, value] of Object.entries(settings)) {
    const field = page.locator(`[name=${name}]`);
    if (name === "thinking" || name === "format") await field.selectOption(value);
    else await field.fill(value);
  }
}

const LARGE = { viewport: { width: 1120, height: 760 } };
const PHONE = { viewport: { width: 390, height: 780 }, deviceScaleFactor: 1.5, hasTouch: true };
const WEATHER = JSON.stringify([{
  name: "get_weather",
  description: "Get the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
}], null, 2);

async function withPage(browser, url, options, work) {
  const { page, close } = await openConsole(browser, url, options);
  await work(page);
  await close();
}

async function ofSmallModel(browser, url) {
  const settings = { temperature: "0.2", seed: "7", max_tokens: "220" };
  await withPage(browser, url, { ...LARGE, colorScheme: "light" }, async (page) => {
    await fill(page, settings);
    await page.locator("#settings-close").click();
    await ask(page, "Write a Python function that reverses a string, and explain it shortly.");
    await picture(page, "console-light");
  });
  await withPage(browser, url, { ...PHONE, colorScheme: "dark" }, async (page) => {
    await picture(page, "console-phone-welcome");
    await fill(page, { ...settings, max_tokens: "90" });
    await page.locator("#settings-close").click();
    await ask(page, "List three reasons to walk to work.");
    await picture(page, "console-phone-dark");
  });
  const korean = { ...LARGE, locale: "ko-KR", colorScheme: "light" };
  await withPage(browser, url, korean, async (page) => {
    await fill(page, { ...settings, max_tokens: "60" });
    await ask(page, "What is the capital of South Korea?");
    await picture(page, "console-korean");
  });
}

async function ofThinkingModel(browser, url) {
  await withPage(browser, url, { ...LARGE, colorScheme: "dark" }, async (page) => {
    await fill(page, { temperature: "0", seed: "1", thinking: "enabled", tools: WEATHER });
    await page.locator("#settings-close").click();
    await ask(page, "What is the weather in Paris?");
    const answer = lastAnswer(page);
    await answer.locator(".thinking summary").click();
    await answer.getByRole("textbox").fill("{\"weather\": \"sunny\"}");
    await picture(page, "console-tools-dark");
  });
}

const browser = await startBrowser();
try {
  for (const [model, work] of [["smollm2-135m", ofSmallModel], ["v41-mini", ofThinkingModel]]) {
    const server = await startPlumb(model);
    try {
      await work(browser, server.url);
    } finally {
      await server.stop();
    }
  }
} finally {
  await browser.close();
}
