// Who does not get into the console.

import { createServer } from "node:http";

import { ConsolePage, check } from "./page.mjs";

/** A reload keeps the session, another tab and a used link do not get one, and scripts see no cookie. */
export async function checkReload({ browser, hub }) {
  const link = hub.newLink();
  const page = await ConsolePage.open(browser, link);
  await page.live();
  check(!page.page.url().includes("token"), "the token of the link is gone from the address");
  const stored = () => page.page.evaluate(() => [sessionStorage.length, document.cookie]);
  check((await stored()).join() === "0,", `nothing is stored while the page is open: ${await stored()}`);
  await page.page.reload();
  await page.live();
  check((await stored()).join() === "0,", `nothing is stored after a reload: ${await stored()}`);
  const other = await ConsolePage.open(browser, link);
  await other.page.waitForSelector("#sign-in:not([hidden])");
  await other.axe("the sign-in");
  other.problems = [];
  await other.finish("a used link");
  await page.key("?");
  await page.page.click("#sign-out");
  await page.page.waitForSelector("#sign-in:not([hidden])");
  await page.page.reload();
  await page.page.waitForSelector("#sign-in:not([hidden])");
  await page.finish("reload");
}

/** A page of another local port and of another origin get nothing, even with the cookie. */
export async function checkAccess({ browser, hub, name }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  const { origin } = new URL(hub.url);
  let cookies = "";
  const thief = createServer((request, response) => {
    cookies += request.headers.cookie ?? "";
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>other</title>");
  });
  await new Promise((resolve) => thief.listen(0, "127.0.0.1", resolve));
  const { port } = thief.address();
  const hosts = name === "chromium" ? ["127.0.0.1", "localhost", "evil.example"] : ["127.0.0.1", "localhost"];
  for (const host of hosts) {
    const foreign = await browser.newPage();
    await foreign.goto(`http://${host}:${port}/console/`);
    const got = await foreign.evaluate(async (target) => {
      const attempt = async (work) => {
        try {
          return await work();
        } catch {
          return "refused";
        }
      };
      const read = (path, options) => attempt(async () => (await fetch(`${target}/console/${path}`, options)).text());
      const options = { credentials: "include" };
      const framed = await new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.src = `${target}/console/`;
        frame.onload = () => attempt(() => frame.contentDocument?.body.textContent || "nothing").then(resolve);
        frame.onerror = () => resolve("refused");
        document.body.append(frame);
      });
      const script = await new Promise((resolve) => {
        const made = document.createElement("script");
        made.src = `${target}/console/session.js`;
        made.onload = () => resolve("loaded");
        made.onerror = () => resolve("refused");
        document.body.append(made);
      });
      const opened = open(`${target}/console/`);
      const window_ = await attempt(() => opened?.document.title ?? "refused");
      return {
        hub: await read("api/hub", options), events: await read("api/events", options),
        header: await read("api/hub", { ...options, headers: { "x-trunkline-console": "x" } }),
        session: await read("api/session", { ...options, method: "POST", body: "{}" }), framed, script, window: window_,
      };
    }, origin);
    for (const [what, text] of Object.entries(got)) {
      check(["refused", "nothing", ""].includes(String(text)), `a page of ${host} got ${what}: ${text}`);
    }
    await foreign.close();
  }
  // The browser does send the cookie to the other port: it is of no use there without the header token.
  check(cookies.includes("trunkline_console_"), `the other port saw ${cookies}`);
  for (const headers of [{ cookie: cookies }, { cookie: cookies, origin }, { cookie: cookies, "x-trunkline-console": "" }]) {
    for (const path of ["hub", "events", "session", "links"]) {
      const method = path === "links" ? "POST" : "GET";
      const response = await fetch(`${origin}/console/api/${path}`, { method, headers });
      check(response.status === 401, `${path} with a stolen cookie: ${response.status}`);
    }
  }
  thief.close();
  await page.finish("access");
}
