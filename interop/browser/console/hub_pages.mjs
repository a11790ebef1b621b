// The pages of the hub: overview, servers, sessions and cost.

import { ConsolePage, check } from "./page.mjs";

const pixels = (root) => [...document.querySelectorAll(`${root} .plot path`)].filter((path) => path.getAttribute("d").length > 0).length;

async function open({ browser, hub }, hash, ...options) {
  const page = await ConsolePage.open(browser, hub.newLink(...options));
  await page.live();
  await page.page.evaluate((to) => { location.hash = to; }, hash);
  await page.page.waitForSelector(`#page-${hash.split("/")[1]}:not([hidden])`);
  return page;
}

/** The last hour is plotted from what the hub counted before the page was opened, and each server has its figures. */
export async function checkOverview({ browser, hub }) {
  for (let made = 0; made < 20; made += 1) await hub.call("modern__test_simple_text");
  for (let made = 0; made < 3; made += 1) await hub.call("modern__test_error_handling");
  const page = await open({ browser, hub }, "#/overview");
  // The slot of the calls has to be over.
  await page.until(() => document.querySelector("#headline").textContent.includes("calls a minute"));
  const row = () => [...document.querySelectorAll("#overview-servers tr")].find((tr) => tr.querySelector("th").textContent === "modern");
  await page.until(`(() => { const row = (${row})(); return row && Number(row.querySelector(".errors").textContent) >= 3 && row.querySelector("[data-label=p95]").textContent !== "" && row.querySelector(".spark path") !== null; })()`);
  check((await page.page.evaluate(pixels, "#page-overview")) >= 3, "calls, errors and latencies are plotted");
  await page.page.focus(".plot-stage");
  await page.key("ArrowLeft");
  check(/ago: /.test(await page.text(".plot-box output")), `the cursor is read out: ${await page.text(".plot-box output")}`);
  await page.axe("the overview with plots");
  await page.page.evaluate(`(${row})().querySelector("button").click()`);
  await page.page.waitForSelector("#page-servers:not([hidden])");
  check((await page.text("#server-name")) === "modern", "the name leads to the server");
  await page.finish("overview");
}

/** A server that was killed is seen with its last words, and the operator restarts, disables and enables it. */
export async function checkServers({ browser, hub }) {
  const page = await open({ browser, hub }, "#/servers/many");
  await hub.call("many__tool_0001");
  await page.until(() => document.querySelector("#server-panel .state").textContent === "ready");
  await hub.call("many__die");
  await page.until(() => document.querySelector("#server-log").textContent.includes("out of patience"));
  await page.until(() => [...document.querySelectorAll("#server-log [data-kind=server_state]")].some((line) => line.textContent.includes("exit")));
  await page.axe("a server with logs");
  // The next call starts it again.
  check((await hub.call("many__tool_0002")).includes("tool_0002"), "the server is started again");
  const facts = () => document.querySelector("#server-panel .fact-list").textContent;
  const starts = `Number(/Starts(\\d+)/.exec((${facts})())?.[1] ?? 0)`;
  await page.until(() => document.querySelector("#server-panel .state").textContent === "ready" && !document.querySelector("#server-restart").disabled);
  await page.until(`${starts} >= 2`);
  const before = await page.page.evaluate(starts);
  await page.page.click("#server-restart");
  await page.until(`${starts} > ${before}`);
  await page.page.click("#server-toggle");
  await page.until(() => document.querySelector("#server-panel .state").textContent === "disabled");
  check((await hub.call("many__tool_0001")).includes("error"), "a disabled server is not called");
  await page.page.click("#server-toggle");
  await page.until(() => document.querySelector("#server-panel .state").textContent === "ready");
  check((await hub.call("many__tool_0001")).includes("tool_0001"), "an enabled server is called");
  await page.key("1");
  await page.until(() => [...document.querySelectorAll("#overview-servers tr")].some((tr) => tr.textContent.includes("many") && tr.querySelector(".reason").textContent.includes("failed at")));
  await page.finish("servers");
}

/** A thousand tools are listed smoothly, and the keyboard reaches everything. */
export async function checkManyTools({ browser, hub, name }) {
  const page = await open({ browser, hub }, "#/servers/many/tools");
  await page.until(() => document.querySelectorAll("#server-items tr").length === 1001);
  await page.page.evaluate(() => { window.longTasks.length = 0; });
  await page.key("l");
  await page.key("l");
  await page.key("l");
  await page.key("l");
  await page.until(() => location.hash === "#/servers/many/tools");
  await page.page.focus("#server-filter");
  await page.page.keyboard.type("host");
  await page.until(() => document.querySelectorAll("#server-grid .rows .row:not([hidden])").length === 1);
  await page.key("Escape");
  await page.key("Home");
  await page.until(() => document.querySelector("#server-name").textContent === "hostile");
  const tasks = await page.page.evaluate(() => window.longTasks);
  await page.finish("many tools");
  return name === "chromium" ? `${tasks.length} long tasks, longest ${Math.max(0, ...tasks).toFixed(0)} ms` : "";
}

/** Texts of a hostile server are text on each of its pages. */
export async function checkHostileServer({ browser, hub }) {
  await hub.call("hostile__markup");
  const page = await open({ browser, hub }, "#/servers/hostile");
  await page.until(() => document.querySelector("#server-log").textContent.includes("onerror="));
  // What it calls itself is shown as it came.
  await page.until(() => document.querySelector("#server-panel .fact-list").textContent.includes("<script>"));
  await page.page.click("#server-tab-tools");
  await page.until(() => document.querySelector("#server-items").textContent.includes("onerror="));
  await page.axe("the tools of a hostile server");
  for (const id of ["overview", "sessions", "cost"]) {
    await page.page.click(`#nav-${id}`);
    await page.until((wanted) => location.hash.startsWith(`#/${wanted}`), id);
  }
  await page.until(() => document.querySelector("#cost-servers")?.textContent.includes("hostile"));
  const found = await page.page.evaluate(() => ({
    pwned: window.pwned, polluted: {}.polluted, marked: document.querySelectorAll("img, #hostile, body script, b").length,
  }));
  check(found.pwned === undefined && found.polluted === undefined && found.marked === 0, JSON.stringify(found));
  await page.finish("hostile server");
}

/** Sessions of clients are listed, and end after the operator has confirmed it. */
export async function checkSessions({ browser, hub }) {
  const client = `editor ${Date.now()}`;
  const id = await hub.openSession(client);
  const page = await open({ browser, hub }, "#/sessions");
  const listed = (wanted) => [...document.querySelectorAll("#session-rows tr")].some((tr) => tr.textContent.includes(wanted));
  await page.until(listed, client);
  check(!(await page.page.content()).includes(id), "no id is shown whole");
  await page.axe("the sessions");
  const press = () => page.page.evaluate((wanted) => {
    [...document.querySelectorAll("#session-rows tr")].find((tr) => tr.textContent.includes(wanted)).querySelector("button").click();
  }, client);
  await press();
  await page.page.waitForSelector("#confirm-yes");
  await page.axe("the confirmation");
  await page.key("Escape");
  await page.until(() => document.querySelector("#confirm-yes") === null);
  check(await page.page.evaluate(listed, client), "Escape ends nothing");
  await press();
  await page.page.waitForSelector("#confirm-yes");
  await page.page.click("#confirm-yes");
  await page.until((wanted) => ![...document.querySelectorAll("#session-rows tr")].some((tr) => tr.textContent.includes(wanted)), client);
  await page.finish("sessions");
}

/** A read-only session sees the pages, and is offered nothing that changes something. */
export async function checkReadOnly({ browser, hub }) {
  await hub.openSession("read-only check");
  const page = await open({ browser, hub }, "#/servers/modern", "--read-only");
  await page.until(() => document.querySelector("#server-panel .fact-list").textContent.includes("modern") || document.querySelector("#server-panel .fact-list").textContent.includes("2026-07-28"));
  check((await page.page.$("#server-restart")) === null && (await page.page.$("#server-toggle")) === null, "no button changes a server");
  await page.page.click("#nav-sessions");
  await page.until(() => document.querySelectorAll("#session-rows tr").length > 0);
  check((await page.page.$$("#session-rows button")).length === 0, "no button ends a session");
  check(await page.page.$eval("#share", (share) => share.hidden), "no further link is made");
  await page.finish("read-only");
}

/** The cost of definitions is shown by server, the largest first, with how it is estimated. */
export async function checkCost({ browser, hub }) {
  // What a server offers is known once it was needed.
  for (const server of ["modern", "legacy"]) await hub.call(`${server}__test_simple_text`);
  for (const tool of ["hostile__markup", "many__tool_0001"]) await hub.call(tool);
  const page = await open({ browser, hub }, "#/cost");
  await page.until(() => document.querySelectorAll("#cost-servers tr").length >= 4);
  check(/About [\d,]+ tokens/.test(await page.text("#cost-total")), await page.text("#cost-total"));
  check((await page.text("#page-cost")).includes("4 bytes"), "the estimate is explained");
  const numbers = await page.page.$$eval("#cost-servers tr", (rows) => rows.map((row) => Number(row.querySelectorAll("td")[1].textContent.replace(/\D/g, ""))));
  check(numbers.every((tokens, at) => at === 0 || tokens <= numbers[at - 1]) && numbers[0] > 10_000, `the largest is first: ${numbers}`);
  const widths = await page.page.$$eval("#cost-servers .bar", (bars) => bars.map((bar) => bar.offsetWidth));
  check(widths[0] > 2 * widths[1], `the bars are as long as the numbers: ${widths}`);
  await page.axe("the costs");
  await page.finish("cost");
}
