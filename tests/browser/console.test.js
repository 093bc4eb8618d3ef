// tests/browser/console.test.js
// The console as people use it, in Chromium, against the real service over a scripted generator
// (scripted_server.cc says what it answers to which word).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import {
  ask, clipboard, ended, lastAnswer, messageBox, openConsole, send, startBrowser, startScripted,
} from "./console.js";

let browser;
let server;

before(async () => {
  [browser, server] = await Promise.all([startBrowser(), startScripted()]);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

// A test with a page of its own, in which nothing that must not happen does.
function onPage(name, options, work) {
  test(name, async () => {
    const { page, close } = await openConsole(browser, server.url, options);
    await work(page);
    await close();
  });
}

const text = (locator) => locator.innerText();

onPage("a message is answered, with what it took", {}, async (page) => {
  assert.equal(await page.locator("#model").inputValue(), "scripted");
  const answer = await ask(page, "hello");
  assert.equal(await text(answer.locator(".words")), "Hello! How can I help?");
  assert.match(await text(answer.locator(".facts")),
    /^23 tokens.*first after [\d.]+ s.*prompt \d+.*seed \d+$/s);
  assert.equal(await messageBox(page).inputValue(), "");
  assert.match(await text(page.locator("#status")), /The answer is complete: 23 tokens/);
});

onPage("an answer is shown while it comes, and stops by Esc", {}, async (page) => {
  await send(page, "forever");
  const words = lastAnswer(page).locator(".words");
  await words.filter({ hasText: "One, two, three" }).waitFor();
  assert.equal(await lastAnswer(page).getAttribute("aria-busy"), "true");
  assert.equal(await page.locator("#send").isVisible(), false);
  await messageBox(page).press("Escape");
  const answer = await ended(page);
  assert.match(await text(answer.locator(".facts")), /^stopped/);
  assert.equal(await text(words), "One, two, three");
  assert.equal(await page.locator("#send").isVisible(), true);
  await ask(page, "hello");
  assert.equal(await page.locator(".turn").count(), 4);
});

onPage("the stop button stops, and gives the focus back", {}, async (page) => {
  await send(page, "forever");
  await page.getByRole("button", { name: "Stop" }).click();
  await ended(page);
  assert.equal(await page.evaluate(() => document.activeElement.id), "message");
});

onPage("a draft outlives an answer, and Enter sends nothing meanwhile", {}, async (page) => {
  await send(page, "forever");
  await send(page, "the next");
  assert.equal(await messageBox(page).inputValue(), "the next");
  assert.equal(await page.locator(".turn.user").count(), 1);
  await messageBox(page).press("Escape");
  await ended(page);
});

onPage("Markdown becomes nodes, and HTML stays text", {}, async (page) => {
  const answer = await ask(page, "markdown");
  const words = answer.locator(".words");
  assert.equal(await text(words.locator("h5")), "Reversing a string");
  assert.equal(await text(words.locator("strong").first()), "outer");
  assert.match(await text(words.locator("pre code")), /^void reverse\(char/);
  assert.equal(await words.locator("ol > li").count(), 2);
  assert.equal(await words.locator("ol ul > li").count(), 2);
  assert.equal(await words.locator("img, script").count(), 0);
  assert.match(await text(words), /<img src=x onerror=/);
  assert.equal(await page.title(), "plumb");
  await words.getByRole("button", { name: "Copy the code" }).click();
  assert.match(await clipboard(page), /^void reverse\(char \*text, size_t length\) \{\n {2}for/);
});

onPage("the page cannot be made to read HTML", {
  expected: [/TrustedHTML/i, /Content Security Policy/i],
}, async (page) => {
  const refused = await page.evaluate(() => {
    try {
      document.body.innerHTML = "<b>no</b>";
      return "read";
    } catch (error) {
      return error.name;
    }
  });
  assert.equal(refused, "TypeError");
});

onPage("an answer is given again, and with its seed as it was", {}, async (page) => {
  const answer = await ask(page, "hello");
  const seed = (await text(answer.locator(".seed"))).replace("seed ", "");
  await answer.locator(".seed").click();
  assert.equal(await page.locator("[name=seed]").inputValue(), seed);
  await answer.getByRole("button", { name: "Regenerate" }).click();
  const again = await ended(page);
  assert.equal(await page.locator(".turn").count(), 2);
  assert.equal(await text(again.locator(".seed")), `seed ${seed}`);
});

onPage("a question is changed and sent again, and what followed goes", {}, async (page) => {
  await ask(page, "hello");
  await ask(page, "hello again");
  await page.locator(".turn.user").first().hover();
  await page.getByRole("button", { name: "Edit" }).first().click();
  const box = page.getByRole("textbox", { name: "Edit" });
  assert.equal(await box.inputValue(), "hello");
  await box.fill("markdown");
  await box.press("Enter");
  const answer = await ended(page);
  assert.equal(await page.locator(".turn").count(), 2);
  assert.equal(await text(page.locator(".said")), "markdown");
  assert.match(await text(answer.locator(".words")), /Reversing/);
});

onPage("a change is given up by Esc", {}, async (page) => {
  await ask(page, "hello");
  await page.locator(".turn.user").hover();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Edit" }).press("Escape");
  assert.equal(await text(page.locator(".said")), "hello");
  assert.equal(await page.locator(".turn").count(), 2);
});

onPage("a request is copied as a command that gives the same answer", {}, async (page) => {
  await page.locator("#settings-button").click();
  await page.locator("[name=system]").fill("It's a test.");
  await page.locator("[name=max_tokens]").fill("5");
  const answer = await ask(page, "hello");
  assert.match(await text(answer.locator(".facts")), /ended by the limit of tokens/);
  await answer.getByRole("button", { name: "Copy as curl" }).click();
  const command = await clipboard(page);
  const seed = (await text(answer.locator(".seed"))).replace("seed ", "");
  assert.match(command, new RegExp(`"seed": ${seed}\\b`));
  const out = execFileSync("/bin/sh", ["-c", command], { encoding: "utf8", stdio: "pipe" });
  const chunks = out.split("\n").filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "Hello");
});

onPage("settings reach the server, which refuses what it must", {
  expected: [/400 \(Bad Request\)/],
}, async (page) => {
  await page.locator("#settings-button").click();
  await page.locator("[name=more]").fill("{\"top_k\": 4, \"temperature\": 9}");
  const answer = await ask(page, "hello");
  const fault = answer.locator(".fault");
  assert.match(await text(fault), /temperature.*Change that setting\./s);
  await fault.getByRole("button", { name: "Show the setting" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.name), "temperature");
});

onPage("a setting that cannot be read is marked, and nothing is sent", {}, async (page) => {
  await page.locator("#settings-button").click();
  await page.locator("[name=tools]").fill("[{");
  await page.locator("#settings-close").click();
  await send(page, "hello");
  assert.equal(await page.locator("[name=tools]").getAttribute("aria-invalid"), "true");
  assert.match(await text(page.locator("#fault-of-tools")), /This is no JSON/);
  assert.equal(await messageBox(page).inputValue(), "hello");
  assert.equal(await page.locator(".turn").count(), 0);
  await page.locator("[name=tools]").fill("");
  assert.equal(await page.locator("#fault-of-tools").count(), 0);
  await messageBox(page).press("Enter");
  await ended(page);
});

onPage("a format that cannot be enforced is refused, and found", {
  expected: [/400 \(Bad Request\)/],
}, async (page) => {
  await page.locator("#settings-button").click();
  await page.locator("[name=format]").selectOption("regex");
  await page.locator("[name=format_source]").fill("[a-z");
  await send(page, "hello");
  const fault = (await ended(page)).locator(".fault");
  await fault.getByRole("button", { name: "Show the setting" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.name), "format");
});

onPage("an answer that fails says so, and is tried again", {}, async (page) => {
  const answer = await ask(page, "break");
  assert.equal(await text(answer.locator(".words")), "This will not");
  assert.match(await text(answer.locator(".fault")),
    /^the server failed to answer.*Try again; if it happens again, its log has request req-/s);
  assert.equal(await answer.locator(".fault").getAttribute("role"), "alert");
  await answer.locator(".fault").getByRole("button", { name: "Try again" }).click();
  await ended(page);
  assert.equal(await page.locator(".turn").count(), 2);
});

onPage("a server that is gone is one line, and what was said stays", {
  expected: [/ERR_CONNECTION|ERR_FAILED|Failed to load/],
}, async (page) => {
  await ask(page, "hello");
  await page.route("**/v1/**", (route) => route.abort("connectionrefused"));
  const answer = await ask(page, "hello");
  assert.equal(await text(answer.locator(".fault")),
    "The server does not answer. Check that plumb runs, then try again. Try again");
  await page.unroute("**/v1/**");
  await answer.getByRole("button", { name: "Try again" }).click();
  assert.match(await text((await ended(page)).locator(".words")), /^Hello/);
});

onPage("a conversation outlives a reload, and a new chat ends it", {}, async (page) => {
  await ask(page, "markdown");
  await page.reload();
  assert.match(await text(lastAnswer(page).locator(".words")), /Reversing a string/);
  await page.locator("#new-chat").click();
  assert.equal(await page.locator(".turn").count(), 0);
  assert.equal(await page.locator("#welcome").isVisible(), true);
  await page.reload();
  assert.equal(await page.locator(".turn").count(), 0);
});

onPage("an answer that a reload cuts short is kept as far as it came", {}, async (page) => {
  await send(page, "forever");
  await lastAnswer(page).locator(".words", { hasText: "One, two, three" }).waitFor();
  await page.reload();
  const answer = await ended(page);
  assert.equal(await text(answer.locator(".words")), "One, two, three");
  assert.match(await text(answer.locator(".facts")), /^stopped/);
  await answer.getByRole("button", { name: "Regenerate" }).click();
  await lastAnswer(page).locator(".words", { hasText: "One, two, three" }).waitFor();
});

onPage("who has scrolled up is left there, and led back", {
  viewport: { width: 700, height: 420 },
}, async (page) => {
  for (let i = 0; i < 3; ++i) await ask(page, "markdown");
  const end = () => page.evaluate(() => {
    const talk = document.getElementById("talk");
    return talk.scrollHeight - talk.scrollTop - talk.clientHeight;
  });
  assert.ok(await end() < 4);
  await page.locator("#talk").hover();
  await page.mouse.wheel(0, -5000);
  await page.locator("#latest").waitFor();
  assert.ok(await end() > 100);
  await page.locator("#latest").click();
  await page.locator("#latest").waitFor({ state: "hidden" });
  assert.ok(await end() < 4);
});
