// Questions to clients of the hub, answered in the page: a real legacy client of npm's SDK calls a modern server that asks.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { ConsolePage, check } from "./page.mjs";

const ASKING = "modern__test_input_required_result_elicitation";

/** A client of the SDK 1.x, which is asked and answers when it is told to, or never. */
export class LegacyClient {
  /** The questions that it got, each with what answers it. */
  asked = [];
  cancelled = 0;

  static async connect(sdk, url, name) {
    const { resolve } = createRequire(`${sdk}/package.json`);
    const load = (path) => import(pathToFileURL(resolve(`@modelcontextprotocol/sdk/${path}.js`)).href);
    const { Client } = await load("client/index");
    const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
    const { ElicitRequestSchema } = await load("types");
    const made = new LegacyClient();
    made.client = new Client({ name, version: "1" }, { capabilities: { elicitation: {} } });
    made.client.setRequestHandler(ElicitRequestSchema, (request, { signal }) => new Promise((answer, reject) => {
      made.asked.push({ message: request.params.message, answer });
      signal.addEventListener("abort", () => {
        made.cancelled += 1;
        reject(new Error("cancelled"));
      });
    }));
    await made.client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return made;
  }

  async call(name, args = {}) {
    const { content } = await this.client.callTool({ name, arguments: args });
    return content[0].text;
  }

  close() {
    return this.client.close();
  }
}

/** Seen on both wires, answered in the page, and the client is notified. */
export async function checkClientQuestions({ browser, hub, sdk }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  const client = await LegacyClient.connect(sdk, hub.url, "legacy client");
  const result = client.call(ASKING);
  await page.until(() => document.querySelector("#nav-questions").textContent === "Questions (1)");
  // The question is on both wires while it waits.
  await page.openFirst(`client:"legacy client" tool:${ASKING}`);
  const titles = (side) => page.page.$$eval(`.pair > .message:${side}-child h4`, (all) => all.map((title) => title.firstChild.textContent));
  check((await titles("first")).includes("elicitation/create"), `the client is asked: ${await titles("first")}`);
  check((await titles("last")).some((title) => title.includes("input required")), `the server asks: ${await titles("last")}`);
  check((await page.text("#detail-head .badge")) === "waiting", await page.text("#detail-head"));
  await page.page.click("#nav-questions");
  await page.page.waitForSelector(".question-card");
  await page.axe("the questions");
  check((await page.text(".question-card")).includes("legacy client"), await page.text(".question-card"));
  await page.page.type(".question-card input", "Olga of the console");
  await page.page.click(".question-card [type=submit]");
  check((await result).includes("Olga of the console"), `the call has the answer of the page: ${await result}`);
  check(client.asked.length === 1 && client.cancelled === 1, `the client was notified: ${client.cancelled}`);
  await page.until(() => document.querySelector(".answered li strong")?.textContent === "answered in the console");
  await page.until(() => document.querySelector("#nav-questions").textContent === "Questions");
  await page.axe("answered questions");
  await page.page.click("#nav-calls");
  await page.until(() => [...document.querySelectorAll("#detail h4")].some((title) => title.textContent.startsWith("notifications/cancelled")));

  // Where the client is first, the page is told so, and what was typed comes too late.
  const second = client.call(ASKING);
  await page.page.click("#nav-questions");
  await page.page.waitForSelector(".question-card input");
  await page.page.type(".question-card input", "too late");
  client.asked[1].answer({ action: "accept", content: { name: "Carl" } });
  check((await second).includes("Carl"), await second);
  await page.until(() => document.querySelectorAll(".question-card").length === 0);
  await page.until(() => document.querySelector(".answered li strong")?.textContent === "answered by the client");
  check(client.cancelled === 1, "nothing was cancelled");

  // A question that waits already is there when a page is opened.
  const third = client.call(ASKING);
  await page.page.waitForSelector(".question-card input");
  // In a browser of its own: one has one session at a time.
  const context = await browser.createBrowserContext();
  const other = await ConsolePage.open(context, hub.newLink());
  await other.live();
  await other.page.click("#nav-questions");
  await other.page.waitForSelector(".question-card input");
  await other.page.evaluate(() => [...document.querySelectorAll(".question-card button")].find((each) => each.textContent === "Decline").click());
  check(/declined/.test(await third), await third);
  // A page in the background is not drawn.
  await page.page.bringToFront();
  await page.until(() => document.querySelectorAll(".question-card").length === 0);
  await other.finish("another page");
  await context.close();
  await client.close();
  await page.finish("questions of clients");
}
