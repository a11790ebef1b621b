// The live stream: without a gap after a break, and smooth at a hundred events a second.

import { BreakableProxy } from "./hub.mjs";
import { ConsolePage, check } from "./page.mjs";

const TEXT = "modern__test_simple_text";

const count = () => Number(document.querySelector("#counts").textContent.split(" ")[0].replaceAll(",", ""));

/** What happened while the connection was broken comes afterwards, each event once. */
export async function checkReconnection({ browser, hub }) {
  const own = new URL(hub.url);
  const proxy = await BreakableProxy.start(own.port);
  const link = new URL(hub.newLink());
  link.port = String(proxy.port);
  const page = await ConsolePage.open(browser, link.href);
  await page.live();
  await page.caughtUp(hub);
  await page.page.click("#clear");
  for (let round = 0; round < 3; round += 1) {
    await hub.call(TEXT);
    proxy.cut();
    await page.page.waitForSelector("#stream-state[data-state=lost]");
    await hub.call(TEXT);
    proxy.mend();
    await page.live();
    await hub.call(TEXT);
  }
  await page.until(`(${count})() >= 9`);
  // The end of the last call comes after its row.
  await page.until(() => ![...document.querySelectorAll("#call-grid .rows .row:not([hidden]) .outcome")].some((cell) => cell.textContent === "running"));
  const outcomes = await page.outcomes();
  check(outcomes.length === 9 && outcomes.every((outcome) => outcome === "ok"), `each call once and whole: ${outcomes}`);
  check(!(await page.text("#counts")).includes("dropped"), await page.text("#counts"));
  await page.finish("reconnection");
  proxy.stop();
}

/** The page stays smooth at over a hundred events a second, with a thousand calls in the list. */
export async function checkRate({ browser, hub, name }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await page.caughtUp(hub);
  await page.page.click("#clear");
  await page.page.evaluate(() => {
    window.frames_ = [];
    let last = performance.now();
    const tick = (now) => {
      window.frames_.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    window.longTasks.length = 0;
    // The page has more files than this.
    performance.clearResourceTimings();
  });
  const started = performance.now();
  const calls = 400;
  const pause = 25;
  for (let made = 0; made < calls; made += 1) {
    const next = new Promise((resolve) => setTimeout(resolve, pause));
    await Promise.all([hub.call(TEXT), next]);
    if (made === calls / 2) await page.filter("server:modern status:ok simple");
  }
  const seconds = (performance.now() - started) / 1000;
  await page.until(`(${count})() >= ${calls}`);
  const { frames, tasks, rows, events } = await page.page.evaluate(() => ({
    frames: window.frames_, tasks: window.longTasks, rows: document.querySelectorAll("#call-grid .rows .row").length,
    events: performance.getEntriesByType("resource").length,
  }));
  check(rows < 80, `only the rows in sight exist: ${rows} of ${calls}`);
  check(events < 20, "the events come over one connection");
  frames.sort((a, b) => a - b);
  const at = (part) => frames[Math.floor(frames.length * part)]?.toFixed(0);
  await page.finish("rate");
  const long = name === "chromium" ? `, ${tasks.length} long tasks, longest ${Math.max(0, ...tasks).toFixed(0)} ms` : "";
  return `${(calls * 6 / seconds).toFixed(0)} events a second, frames p50 ${at(0.5)} ms p99 ${at(0.99)} ms${long}`;
}
