// Tools, prompts and resources, tried in the page.

import { ConsolePage, check } from "./page.mjs";

/** Goes to an item by its address. */
async function open(page, kind, id) {
  await page.page.evaluate((hash) => { location.hash = hash; }, `#/try/${kind}/${encodeURIComponent(id)}`);
  await page.until((name) => document.querySelector("#page-try .try-title h2 bdi")?.textContent === name || document.querySelector("#try-uri")?.value === name || document.querySelector(".try-option[aria-selected=true]")?.textContent === name, id);
}

/** Sends what the form has, and waits for the outcome. */
async function send(page, outcome) {
  await page.page.click("#try-send");
  await page.until((wanted) => document.querySelector("#try-status").textContent === wanted, outcome);
}

/** Sets the text of a field, as typing does. */
async function fill(page, label, value) {
  const found = await page.page.evaluate((name, text) => {
    const field = [...document.querySelectorAll(".try-main label, .questions-page label")].find((each) => each.textContent.startsWith(name))?.control;
    if (!field) return false;
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  }, label, value);
  check(found, `there is a field ${label}`);
}

const result = (page) => page.text("#try-result");

/** As a new user would: from the link to the result of a tool, with the keyboard. */
export async function checkFirstResult({ browser, hub }) {
  const link = hub.newLink();
  const started = performance.now();
  const page = await ConsolePage.open(browser, link);
  await page.live();
  await page.page.click("#nav-try");
  await page.until(() => document.querySelectorAll(".try-option").length > 10);
  await page.page.focus("#try-filter");
  await page.page.keyboard.type("legacy elicit");
  await page.page.evaluate(() => { document.querySelector("#try-filter").value = ""; document.querySelector("#try-filter").dispatchEvent(new Event("input")); });
  await page.page.keyboard.type("legacy test_simple_text");
  await page.until(() => document.querySelectorAll(".try-option").length === 1);
  await page.key("Enter");
  await page.page.waitForSelector("#try-send");
  await page.page.focus("#try-send");
  await page.key("Enter");
  await page.until(() => document.querySelector("#try-status").textContent === "ok");
  const seconds = (performance.now() - started) / 1000;
  check((await result(page)).includes("simple text"), await result(page));
  await page.axe("a result of Try");
  check(seconds < 30, `from the link to a result: ${seconds} s`);
  await page.finish("first result");
  return `from the link to a tool's result ${seconds.toFixed(1)} s`;
}

/** The form and the JSON follow each other, problems are at their field, and what was sent is what is written. */
export async function checkForms({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await open(page, "tools", "hostile__form");
  const raw = () => page.page.$eval(".raw-text", (field) => field.value);
  await fill(page, "count", "7");
  check(JSON.parse(await raw()).count === 7, await raw());
  await page.page.click("#try-send");
  const problems = () => page.page.$$eval("#page-try .field-problem", (all) => all.map((each) => each.textContent).filter(Boolean));
  check((await problems()).join() === "must be at most 5", `${await problems()}`);
  check(await page.page.evaluate(() => document.activeElement.getAttribute("aria-invalid") === "true"), "the focus is at the problem");
  await page.axe("a form with a problem");
  await fill(page, "count", "x");
  check((await problems()).join() === "must be a whole number", `${await problems()}`);
  await fill(page, "sure", "1");
  await fill(page, "either", '{"a":1}');
  await page.page.evaluate(() => [...document.querySelectorAll("#page-try button")].find((each) => each.textContent === "Add an item").click());
  check((await problems()).some((text) => text.includes("a whole number")), "an item without a value is a problem");
  // The JSON is the same thing, and large numbers stay as they are written.
  await page.page.$eval(".raw-text", (field) => {
    field.value = '{"count":4,"nested":{"list":[3,4],"either":"e"},"slow":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!","more":12345678901234567890}';
    field.dispatchEvent(new Event("input"));
  });
  check((await problems()).length === 0, `${await problems()}`);
  check((await page.page.$$(".items .item")).length === 2, "the form has the items of the JSON");
  await page.page.$eval(".raw-text", (field) => { field.value += "}"; field.dispatchEvent(new Event("input")); });
  check((await problems()).length === 1, "what is not JSON is a problem");
  await page.page.$eval(".raw-text", (field) => { field.value = field.value.slice(0, -1); field.dispatchEvent(new Event("input")); });
  await send(page, "ok");
  check((await result(page)).includes("1234567890123456"), await result(page));
  await page.page.click("#nav-calls");
  await page.openFirst("tool:hostile__form");
  check((await page.text("#detail-head")).includes("hostile"), "the call is on the calls page");
  await page.filter("client:console");
  check((await page.outcomes()).length > 0, "and its client is the console");
  await page.finish("forms");
}

/** A schema without end has a form of a bounded size, and its JSON can be edited. */
export async function checkEndlessSchema({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await open(page, "tools", "hostile__endless");
  const fields = await page.page.$$eval("#page-try .field", (all) => all.length);
  check(fields > 100 && fields < 5000, `${fields} fields`);
  const raw = await page.page.$eval(".raw-text", (field) => field.value.length);
  check(raw < 100_000, `${raw} characters of JSON`);
  await page.finish("endless schema");
}

/** Results are rendered: tables, pictures, sound, links; and nothing of them runs. */
export async function checkResults({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await open(page, "tools", "hostile__table");
  await send(page, "ok");
  const table = await page.page.evaluate(() => ({
    heads: [...document.querySelectorAll(".data-table th")].map((cell) => cell.textContent), rows: document.querySelectorAll(".data-table tbody tr").length,
    first: document.querySelector(".data-table tbody tr").textContent,
  }));
  check(table.heads.join() === "number,__proto__,text" && table.rows === 100 && table.first.includes("onerror="), JSON.stringify(table));
  await page.page.evaluate(() => [...document.querySelectorAll("#try-result button")].find((each) => each.textContent.includes("Show all")).click());
  check((await page.page.$$(".data-table tbody tr")).length === 150, "all rows");
  await page.axe("a table");
  await open(page, "tools", "modern__test_image_content");
  await send(page, "ok");
  await page.until(() => document.querySelector("#try-result img")?.naturalWidth > 0);
  check(await page.page.$eval("#try-result img", (image) => image.src.startsWith("blob:")), "a picture is shown from its bytes");
  await page.axe("a picture");
  await open(page, "tools", "modern__test_audio_content");
  await send(page, "ok");
  check((await page.page.$$("#try-result audio")).length === 1, "sound has controls");
  await page.axe("sound");
  for (const tool of ["hostile__media", "hostile__markup", "hostile__form"]) {
    await open(page, "tools", tool);
    if (tool !== "hostile__form") await send(page, "ok");
  }
  await open(page, "tools", "hostile__media");
  await send(page, "ok");
  await page.until(() => document.querySelector("#try-result .error-text:not([hidden])") !== null);
  const found = await page.page.evaluate(() => ({
    pwned: window.pwned, polluted: {}.polluted, marked: document.querySelectorAll("#hostile, body script, #pages svg, #pages iframe, #pages object").length,
    links: document.querySelectorAll("#try-result a").length, pictures: [...document.querySelectorAll("#try-result img")].map((image) => image.src.slice(0, 5)),
  }));
  check(found.pwned === undefined && found.polluted === undefined && found.marked === 0 && found.links === 0, JSON.stringify(found));
  check(found.pictures.join() === "blob:", `only what has the type of a picture is one: ${found.pictures}`);
  await page.finish("results");
}

/** Log lines and progress come while a call runs; a running call is cancelled at its server. */
export async function checkProgress({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await open(page, "tools", "modern__test_tool_with_logging");
  await send(page, "ok");
  check((await page.text(".try-logs")).includes("Tool processing data"), "log lines are shown");
  await open(page, "tools", "legacy__test_tool_with_progress");
  await page.page.evaluate(() => {
    window.progress = [];
    new MutationObserver(() => window.progress.push(document.querySelector(".try-head").textContent)).observe(document.querySelector(".try-head"), { subtree: true, childList: true, characterData: true });
  });
  await send(page, "ok");
  check((await page.page.evaluate(() => window.progress.join())).includes("50 of 100"), "progress is shown");
  for (const server of ["modern", "legacy"]) {
    await open(page, "tools", `${server}__test_slow`);
    await fill(page, "milliseconds", "600000");
    await page.page.click("#try-send");
    await page.until(() => document.querySelector("#try-status").textContent === "running" && !document.querySelector("#try-cancel").disabled);
    await page.axe("a running call");
    await page.page.click("#try-cancel");
    await page.until(() => document.querySelector("#try-status").textContent === "cancelled");
    await page.page.click("#nav-calls");
    await page.filter(`tool:${server}__test_slow`);
    await page.until(() => [...document.querySelectorAll("#call-grid .rows .row:not([hidden]) .outcome")].some((cell) => cell.textContent === "cancelled"));
    await page.filter("");
  }
  check((await page.page.$$(".try-history li")).length >= 4, "the history has the calls");
  await page.page.click("#nav-try");
  await page.page.evaluate(() => document.querySelector('.try-history li:last-child .icon-button').click());
  await page.until(() => document.querySelector("#try-status").textContent === "ok" && document.querySelector(".try-title h2").textContent.includes("logging"));
  await page.finish("progress");
}

/** Questions of the page's own calls are answered in it, in both eras. */
export async function checkOwnQuestions({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await open(page, "tools", "modern__test_input_required_result_elicitation");
  await send(page, "the server asks");
  await page.axe("a question");
  await page.page.evaluate(() => document.querySelector(".question-card [type=submit]").click());
  check((await page.text(".question-card .field-problem:not(:empty)")).includes("needed"), "an empty field is a problem");
  await fill(page, "name", "Ann");
  await page.page.click(".question-card [type=submit]");
  await page.until(() => document.querySelector("#try-status").textContent === "ok");
  check((await result(page)).includes("Ann"), await result(page));
  await open(page, "tools", "legacy__test_sampling");
  await fill(page, "prompt", "Capital of France?");
  await send(page, "the server asks");
  check((await page.text(".question-card")).includes("Capital of France?"), "the conversation is shown");
  await page.axe("a question for a model");
  await page.page.type(".question-card textarea", "Paris");
  await page.page.click(".question-card [type=submit]");
  await page.until(() => document.querySelector("#try-status").textContent === "ok");
  check((await result(page)).includes("Paris"), await result(page));
  await open(page, "tools", "modern__test_input_required_result_list_roots");
  await send(page, "the server asks");
  await page.page.type(".question-card textarea", "file:///home/ann");
  await page.page.click(".question-card [type=submit]");
  await page.until(() => document.querySelector("#try-status").textContent === "ok");
  check((await result(page)).includes("file:///home/ann"), await result(page));
  await open(page, "tools", "modern__test_elicitation");
  await fill(page, "message", "Who?");
  await send(page, "the server asks");
  await page.page.evaluate(() => [...document.querySelectorAll(".question-card button")].find((each) => each.textContent === "Decline").click());
  await page.until(() => document.querySelector("#try-status").textContent === "tool error");
  await open(page, "tools", "hostile__page");
  await fill(page, "url", "javascript:window.pwned=1");
  await send(page, "the server asks");
  check((await page.page.$$(".question-card a")).length === 0, "only addresses of the web are links");
  check((await page.text(".question-card")).includes("javascript:window"), "the address is shown");
  await page.page.evaluate(() => [...document.querySelectorAll(".question-card button")].find((each) => each.textContent === "Dismiss").click());
  await page.until(() => document.querySelector("#try-result").textContent.includes("the user: cancel"));
  await fill(page, "url", `${new URL(hub.url).origin}/healthz?user@evil.example`);
  await send(page, "the server asks");
  const link = await page.page.$eval(".question-card a", ({ href, target, rel, textContent }) => ({ href, target, rel, textContent }));
  check(link.textContent === `Open ${new URL(hub.url).host}` && link.target === "_blank" && link.rel === "noopener noreferrer", JSON.stringify(link));
  check((await page.text(".question-card .host")) === new URL(hub.url).host, "the host is shown before it is opened");
  await page.axe("a page to open");
  await page.page.click(".question-card a");
  await page.until(() => document.querySelector("#try-result").textContent.includes("the user: accept"));
  check(await page.page.evaluate(() => window.pwned === undefined), "nothing ran");
  await page.finish("own questions");
}

/** Prompts with arguments and suggestions; resources, templates, and subscriptions. */
export async function checkPromptsAndResources({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await open(page, "prompts", "modern__test_prompt_with_arguments");
  await page.until(() => document.querySelector("#page-try datalist")?.childElementCount > 0);
  await fill(page, "arg1", "hello");
  await fill(page, "arg2", "world");
  await send(page, "ok");
  check((await result(page)).includes("hello") && (await result(page)).includes("world"), await result(page));
  await page.axe("a prompt");
  await open(page, "prompts", "legacy__test_prompt_with_image");
  await send(page, "ok");
  await page.until(() => document.querySelector("#try-result img")?.naturalWidth > 0);
  await page.page.click("#try-resources");
  await page.until(() => [...document.querySelectorAll(".try-option")].some((option) => option.textContent.includes("template")));
  await page.page.evaluate(() => [...document.querySelectorAll(".try-option")].find((option) => option.textContent.includes("template")).click());
  await page.page.waitForSelector("#try-uri");
  await page.axe("a template");
  await fill(page, "id", "a b");
  check((await page.page.$eval("#try-uri", (field) => field.value)).includes("a%20b"), "the template is filled in");
  await send(page, "ok");
  check((await result(page)).includes("a%20b"), await result(page));
  const watched = await page.page.$$eval(".try-option", (all) => all.map((option) => option.textContent).find((text) => text.includes("watched")));
  await page.page.evaluate((name) => [...document.querySelectorAll(".try-option")].find((option) => option.textContent === name).click(), watched);
  await page.until(() => document.querySelector("#try-uri")?.value.includes("watched"));
  await page.page.click("#try-subscribe");
  await page.until(() => document.querySelector("#try-updates").textContent.includes("no update yet"));
  await hub.call("modern__test_trigger_resource_update");
  await page.until(() => document.querySelector("#try-updates").textContent.includes("updated 1") && document.querySelector("#try-status").textContent === "ok");
  await page.axe("a subscription");
  await page.page.click("#try-subscribe");
  await page.until(() => document.querySelector("#try-updates").textContent === "");
  await page.finish("prompts and resources");
}

/** A read-only session has neither the page nor its questions. */
export async function checkTryReadOnly({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink("--read-only"));
  await page.live();
  const shown = await page.page.$$eval("#nav a:not([hidden])", (all) => all.map((link) => link.id));
  check(!shown.includes("nav-try") && !shown.includes("nav-questions") && shown.includes("nav-timeline"), `${shown}`);
  await page.page.evaluate(() => { location.hash = "#/try/tools/modern__test_simple_text"; });
  await page.until(() => location.hash.startsWith("#/calls"));
  check((await page.page.$$("#try-send")).length === 0, "there is nothing to send");
  await page.finish("read only");
}
