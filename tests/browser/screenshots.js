// tests/browser/screenshots.js
// The pictures of docs/console.md: screenshots.js OUT. The console with real models, so that the
// rates on it are real; seeds are fixed, so the answers are the same each time. Each picture is
// small (FILE_BYTES_MAX), since it lies in the repository.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ask, ended, openConsole, startBrowser } from "./console.js";

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
  await page.screenshot({ path, animations: "disabled" });
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
const PHONE = {
  viewport: { width: 390, height: 780 }, deviceScaleFactor: 1.5, isMobile: true, hasTouch: true,
};
const ANSWER_MS = 300_000;
const tool = (name, description, property) => ({
  name,
  description,
  parameters: {
    type: "object",
    properties: { [property]: { type: property === "minutes" ? "integer" : "string" } },
    required: [property],
  },
});
const TOOLS = JSON.stringify([
  tool("set_timer", "Set a timer", "minutes"), tool("get_time", "Get the local time", "city"),
], null, 2);

async function withPage(browser, url, options, work) {
  const { page, close } = await openConsole(browser, url, options);
  page.setDefaultTimeout(ANSWER_MS);
  await work(page);
  await close();
}

async function ofCoder(browser, url) {
  const settings = { temperature: "0", seed: "7", max_tokens: "240" };
  await withPage(browser, url, { ...LARGE, colorScheme: "light" }, async (page) => {
    await fill(page, settings);
    await page.locator("#settings-close").click();
    await ask(page, "Write a short Python function that reverses the words of a sentence.");
    await picture(page, "console-light");
  });
  await withPage(browser, url, { ...PHONE, colorScheme: "dark" }, async (page) => {
    await fill(page, settings);
    await page.locator("#settings-close").click();
    await ask(page, "Three reasons to walk to work, one line each.");
    await picture(page, "console-phone-dark");
  });
  const korean = { ...LARGE, locale: "ko-KR", colorScheme: "light" };
  await withPage(browser, url, korean, async (page) => {
    await fill(page, { ...settings, max_tokens: "120" });
    await ask(page, "대한민국의 수도는 어디인가요? 한 문장으로 답해 주세요.");
    await picture(page, "console-korean");
  });
}

async function ofThinker(browser, url) {
  await withPage(browser, url, { ...LARGE, colorScheme: "dark" }, async (page) => {
    await fill(page, {
      system: "You are a helpful assistant.",
      temperature: "0", seed: "1", max_tokens: "100", thinking: "enabled", tools: TOOLS,
    });
    await page.locator("#settings-close").click();
    const call = await ask(page, "Set a timer for 25 minutes.");
    await call.locator(".thinking summary").click();
    await call.getByRole("textbox").fill("{\"ok\": true}");
    await call.getByRole("button", { name: "Send the results" }).click();
    await ended(page);
    await picture(page, "console-tools-dark");
  });
}

const browser = await startBrowser();
try {
  const pictures = [["qwen2.5-coder-1.5b", ofCoder], ["v41-mini", ofThinker]];
  for (const [model, work] of pictures) {
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
