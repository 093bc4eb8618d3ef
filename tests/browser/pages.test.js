// tests/browser/pages.test.js
// The console around the conversation: keys, languages, light and dark, keyboard, small screens,
// tools and thoughts, and the headers with which it is served.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  ask, barriers, clipboard, ended, lastAnswer, messageBox, openConsole, send, startBrowser,
  startScripted,
} from "./console.js";

const KEY = "correct-horse-battery";
let browser;
let plain;
let locked;
let deepseek;

before(async () => {
  [browser, plain, locked, deepseek] = await Promise.all([
    startBrowser(), startScripted(), startScripted("--key", KEY), startScripted("--deepseek"),
  ]);
});
after(async () => {
  await browser?.close();
  await Promise.all([plain, locked, deepseek].map((server) => server?.stop()));
});

function onPage(name, server, options, work) {
  test(name, async () => {
    const { page, close } = await openConsole(browser, server().url, options);
    await work(page);
    await close();
  });
}

const text = (locator) => locator.innerText();
const colour = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const LIGHT = "rgb(251, 250, 247)";
const DARK = "rgb(22, 23, 24)";
const UNAUTHORISED = { expected: [/401 \(Unauthorized\)/] };

onPage("a key is asked for, checked, kept in the tab, and never copied", () => locked, UNAUTHORISED,
  async (page) => {
    const dialog = page.locator("#key-dialog");
    await dialog.waitFor();
    await page.locator("#key-input").fill("wrong-horse-battery");
    await page.locator("#key-input").press("Enter");
    await page.locator("#key-fault").waitFor();
    assert.equal(await text(page.locator("#key-fault")), "The server does not know this key.");
    await page.locator("#key-input").fill(KEY);
    await page.locator("#key-input").press("Enter");
    await dialog.waitFor({ state: "hidden" });
    const answer = await ask(page, "hello");
    assert.match(await text(answer.locator(".words")), /^Hello/);
    assert.deepEqual(await page.evaluate(() => [sessionStorage["plumb.key"], document.cookie]),
      [KEY, ""]);
    assert.equal(await page.evaluate((key) => JSON.stringify(localStorage).includes(key), KEY),
      false);
    await answer.getByRole("button", { name: "Copy as curl" }).click();
    const command = await clipboard(page);
    assert.match(command, /Bearer \$PLUMB_API_KEY/);
    assert.equal(command.includes(KEY), false);
    await page.reload();
    await ask(page, "hello");
    assert.equal(await dialog.isVisible(), false);
  });

onPage("without a key the page says what to do", () => locked, UNAUTHORISED, async (page) => {
  await page.locator("#key-dialog").waitFor();
  await page.keyboard.press("Escape");
  const fault = page.locator("#page-fault");
  await fault.waitFor();
  assert.match(await text(fault), /^The server needs a key\. Enter a key that holds\./);
  await fault.getByRole("button", { name: "Enter a key" }).click();
  await page.locator("#key-input").fill("a b");
  await page.locator("#key-input").press("Enter");
  assert.match(await text(page.locator("#key-fault")), /no spaces/);
});

onPage("a key that holds no more is asked for again, and the question goes on", () => locked,
  UNAUTHORISED, async (page) => {
    await page.locator("#key-input").fill(KEY);
    await page.locator("#key-input").press("Enter");
    await page.locator("#key-dialog").waitFor({ state: "hidden" });
    await page.evaluate(() => { sessionStorage["plumb.key"] = "an-old-key"; });
    await send(page, "hello");
    await page.locator("#key-dialog").waitFor();
    await page.locator("#key-input").fill(KEY);
    await page.locator("#key-input").press("Enter");
    await lastAnswer(page).locator(".words", { hasText: "Hello!" }).waitFor();
    assert.equal(await page.locator(".turn").count(), 2);
  });

onPage("thoughts and calls are shown, results are sent, and the answer comes", () => deepseek, {},
  async (page) => {
    await page.locator("#settings-button").click();
    await page.locator("[name=tools]").fill("[{\"name\": \"get_weather\"}]");
    await page.locator("#settings-close").click();
    const answer = await ask(page, "weather in Paris?");
    assert.equal(await text(answer.locator(".thinking summary")), "Thoughts");
    await answer.locator(".thinking summary").click();
    assert.match(await text(answer.locator(".thought")), /^The user asks for the weather\./);
    assert.equal(await text(answer.locator(".words")), "I look it up.");
    assert.equal(await text(answer.locator(".call h3")), "get_weather");
    assert.equal(await text(answer.locator(".call pre")),
      "{\n  \"city\": \"Paris\",\n  \"days\": 2\n}");
    await answer.getByRole("textbox", { name: "Result of get_weather" }).fill("sunny");
    await answer.getByRole("button", { name: "Send the results" }).click();
    const last = await ended(page);
    assert.equal(await text(last.locator(".words")), "It is sunny in Paris, for two days.");
    assert.equal(await page.locator(".turn").count(), 3);
    assert.equal(await page.getByRole("button", { name: "Send the results" }).count(), 0);
    await last.getByRole("button", { name: "Copy as curl" }).click();
    assert.match(await clipboard(page),
      /"role": "tool",\s+"tool_call_id": "[^"]+",\s+"content": "sunny"/);
  });

onPage("thoughts are open while they come", () => deepseek, {}, async (page) => {
  await send(page, "think forever");
  const thinking = lastAnswer(page).locator(".thinking");
  await thinking.locator(".thought", { hasText: "Hmm, let me see" }).waitFor();
  assert.equal(await text(thinking.locator("summary")), "Thinking …");
  assert.equal(await thinking.getAttribute("open"), "");
  await page.keyboard.press("Escape");
  await ended(page);
  const answer = await ask(page, "sunny?");
  assert.equal(await text(answer.locator(".words")), "It is sunny in Paris, for two days.");
});

onPage("Korean is chosen by the browser, or by hand, and kept", () => plain, { locale: "ko-KR" },
  async (page) => {
    assert.equal(await text(page.locator("#welcome-title")), "무엇을 함께 풀어 볼까요?");
    assert.equal(await page.evaluate(() => document.documentElement.lang), "ko");
    const answer = await ask(page, "안녕하세요");
    assert.equal(await text(answer.locator(".words")),
      "안녕하세요! plumb입니다. 무엇을 도와드릴까요? 😀");
    assert.match(await text(answer.locator(".facts")), /토큰/);
    await page.locator("#language").click();
    assert.equal(await page.locator("#send").textContent(), "Send");
    assert.match(await text(lastAnswer(page).locator(".facts")), /tokens/);
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.lang), "en");
  });

onPage("Enter that ends a Korean syllable sends nothing", () => plain, {}, async (page) => {
  await messageBox(page).fill("안녕");
  await page.evaluate(() => document.getElementById("message").dispatchEvent(
    new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true })));
  assert.equal(await page.locator(".turn").count(), 0);
  await messageBox(page).press("Shift+Enter");
  assert.equal(await messageBox(page).inputValue(), "안녕\n");
  assert.equal(await page.locator(".turn").count(), 0);
});

onPage("light and dark follow the system", () => plain, { colorScheme: "dark" }, async (page) => {
  assert.equal(await colour(page), DARK);
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await colour(page), LIGHT);
});

onPage("light and dark are switched by hand, and kept", () => plain, { colorScheme: "light" },
  async (page) => {
    await page.getByRole("button", { name: "Light or dark: as the system has it" }).click();
    await page.getByRole("button", { name: "Light", exact: true }).click();
    assert.equal(await colour(page), DARK);
    await page.reload();
    assert.equal(await colour(page), DARK);
    await page.getByRole("button", { name: "Dark", exact: true }).click();
    assert.equal(await colour(page), LIGHT);
  });

onPage("everything can be done by keyboard", () => plain, {}, async (page) => {
  const focused = () => page.evaluate(() => document.activeElement.id);
  const tabTo = async (id) => {
    for (let i = 0; i < 40 && (await focused()) !== id; ++i) await page.keyboard.press("Tab");
    assert.equal(await focused(), id);
  };
  await page.waitForFunction(() => document.activeElement.id === "message");
  assert.equal(await page.evaluate(() => document.querySelector("a, button, select").id), "skip");
  await page.locator("#skip").focus();
  assert.ok((await page.locator("#skip").boundingBox()).y >= 0);
  await page.keyboard.press("Enter");
  assert.equal(await focused(), "message");
  await page.keyboard.type("hello");
  await page.keyboard.press("Enter");
  await ended(page);
  assert.equal(await focused(), "message");
  await tabTo("settings-button");
  await page.keyboard.press("Enter");
  assert.equal(await focused(), "settings-title");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.name), "system");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#settings").isVisible(), false);
  assert.equal(await focused(), "settings-button");
});

for (const colorScheme of ["light", "dark"]) {
  onPage(`nothing keeps anybody from using the page when it is ${colorScheme}`, () => deepseek,
    { colorScheme, viewport: { width: 1300, height: 900 } }, async (page) => {
      assert.deepEqual(await barriers(page), []);
      await page.locator("#settings-button").click();
      await page.locator("[name=tools]").fill("[{\"name\": \"get_weather\"}]");
      const answer = await ask(page, "weather in Paris?");
      await answer.locator(".thinking summary").click();
      assert.deepEqual(await barriers(page), []);
      await ask(page, "break");
      await page.locator("[name=temperature]").fill("9");
      await send(page, "hello");
      await page.locator("#fault-of-temperature").waitFor();
      assert.deepEqual(await barriers(page), []);
    });
}

onPage("nothing keeps anybody from entering a key", () => locked, UNAUTHORISED, async (page) => {
  await page.locator("#key-input").fill("wrong-horse-battery");
  await page.locator("#key-input").press("Enter");
  await page.locator("#key-fault").waitFor();
  assert.deepEqual(await barriers(page), []);
});

onPage("every control has a name, and every list of turns too", () => plain, {}, async (page) => {
  await ask(page, "markdown");
  await page.locator("#settings-button").click();
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, select, textarea, ol.turns, aside, nav")]
      .filter((element) => element.checkVisibility())
      .filter((element) => !(element.labels?.[0]?.innerText || element.ariaLabel ||
        element.innerText || "").trim())
      .map((element) => element.outerHTML));
  assert.deepEqual(nameless, []);
});

for (const width of [320, 390, 768]) {
  onPage(`nothing is wider than a screen of ${width}`, () => plain,
    { viewport: { width, height: 700 } }, async (page) => {
      await ask(page, "markdown");
      const spill = await page.evaluate(() =>
        [document.documentElement, document.getElementById("talk")]
          .map((element) => element.scrollWidth - element.clientWidth));
      assert.deepEqual(spill, [0, 0]);
      await page.locator("#settings-button").click();
      assert.equal(await page.locator("#main").evaluate((main) => main.inert), true);
      await page.locator("#settings-close").click();
      assert.equal(await page.locator("#main").evaluate((main) => main.inert), false);
    });
}

test("the page and its files are served safely, and once", async () => {
  const page = await fetch(plain.url);
  const html = await page.text();
  assert.equal(page.status, 200);
  assert.equal(page.headers.get("Content-Type"), "text/html; charset=utf-8");
  const policy = page.headers.get("Content-Security-Policy");
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  const files = [...html.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map(([, file]) => file);
  assert.ok(files.length >= 5);
  for (const file of files) {
    const response = await fetch(new URL(file, plain.url));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("X-Content-Type-Options"), "nosniff");
    const etag = response.headers.get("ETag");
    const again = await fetch(new URL(file, plain.url), { headers: { "If-None-Match": etag } });
    assert.equal(again.status, 304);
  }
  assert.equal((await fetch(locked.url, { method: "HEAD" })).status, 200);
});
