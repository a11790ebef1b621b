// The console in a browser: opening it, and looking at it as a user does.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import puppeteer from "puppeteer-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Waits for one answer of the browser at most this long; only a failing test does. */
const DEADLINE = Number(process.env.CONSOLE_DEADLINE ?? 30_000);

export function check(condition, what) {
  if (!condition) throw new Error(what);
}

/** @param {"chromium" | "firefox"} name */
export async function launch(name) {
  if (name === "firefox") {
    // That of Debian is older than some commands of the driver, such as the one for the size of a page.
    const args = ["--width=1280", "--height=720"];
    return puppeteer.launch({ browser: "firefox", executablePath: "/usr/bin/firefox-esr", headless: true, defaultViewport: null, args });
  }
  // The foreign name leads to this machine, as it would after its owner had pointed it here.
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP evil.example 127.0.0.1"];
  return puppeteer.launch({ executablePath: "/usr/bin/chromium", headless: true, defaultViewport: { width: 1280, height: 720 }, args });
}

export class ConsolePage {
  problems = [];

  /** Opens a link. */
  static async open(browser, link, size) {
    const console_ = new ConsolePage();
    const page = await browser.newPage();
    console_.page = page;
    page.setDefaultTimeout(DEADLINE);
    if (size) await page.setViewport(size);
    await page.evaluateOnNewDocument(() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
      window.longTasks = [];
      if (PerformanceObserver.supportedEntryTypes.includes("longtask")) {
        new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
      }
      window.copied = [];
      Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied.push(text); } } });
    });
    page.on("pageerror", (error) => {
      // Firefox reports so what its driver does in a page that is being left.
      if (!error.message.includes("Permission denied to access property")) console_.problems.push(`error: ${error.message}`);
    });
    page.on("console", (message) => {
      // A connection that breaks is reported by the browser itself, and is part of the test.
      if (["error", "warn"].includes(message.type()) && !/ERR_|Failed to load|NetworkError/.test(message.text())) console_.problems.push(message.text());
    });
    await page.goto(link);
    return console_;
  }

  live() {
    return this.page.waitForSelector("#stream-state[data-state=live]");
  }

  /** Waits until the page has what was before it was opened: until it shows a call that is made now. */
  async caughtUp(hub) {
    const name = `mark-${Date.now()}`;
    await hub.call("modern__test_simple_text", {}, { "io.modelcontextprotocol/clientInfo": { name, version: "1" } });
    await this.filter(`client:${name} status:ok`);
    await this.until(() => document.querySelector("#call-grid .rows .row:not([hidden])") !== null);
    await this.filter("");
  }

  text(selector) {
    return this.page.$eval(selector, (found) => found.textContent);
  }

  /** Waits until a function of the page gives something. */
  async until(look, ...args) {
    // The driver's own way makes code of text in the page, which the policy of the page forbids.
    const end = performance.now() + DEADLINE;
    while (performance.now() < end) {
      if (await this.page.evaluate(look, ...args)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`it never came to this: ${look}`);
  }

  /** Sets the filter, as typing does. */
  async filter(text) {
    await this.page.$eval("#filter", (field, value) => {
      field.value = value;
      field.dispatchEvent(new Event("input"));
    }, text);
  }

  /** Opens the first call that the filter leaves. */
  async openFirst(filter) {
    await this.filter(filter);
    await this.until(() => document.querySelector("#call-grid .rows .row:not([hidden])") !== null);
    await this.page.focus("#call-grid");
    await this.page.keyboard.press("Home");
    await this.page.keyboard.press("Enter");
    await this.page.waitForSelector("#detail:not([hidden]) .message");
  }

  /** The outcome texts of the calls that are shown. */
  outcomes() {
    return this.page.$$eval("#call-grid .rows .row:not([hidden]) .outcome", (cells) => cells.map((cell) => cell.textContent));
  }

  key(name) {
    return this.page.keyboard.press(name);
  }

  async axe(what) {
    const found = await this.page.evaluate(`${AXE};axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")))`);
    check(found.length === 0, `axe finds in ${what}: ${found.join("\n")}`);
  }

  async finish(what) {
    const violations = await this.page.evaluate(() => window.violations);
    check(violations.length === 0, `${what}: the policy was violated: ${violations}`);
    check(this.problems.length === 0, `${what}: ${this.problems.join("\n")}`);
    await this.page.close();
  }
}
