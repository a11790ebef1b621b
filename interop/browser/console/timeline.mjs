// The timeline: lanes, spans, the keys and the pointer, live and of a record file.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ConsolePage, check } from "./page.mjs";

/** What is selected, without the marks around texts of peers. */
const selected = () => document.querySelector("#timeline-selected").textContent.replaceAll(/[\u2068\u2069]/g, "");

export async function checkTimeline({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await page.page.click("#nav-timeline");
  await page.axe("an empty timeline");
  await hub.call("modern__test_tool_with_progress");
  await hub.trunklineAsync("call", "--revision", "2025-06-18", hub.url, "modern__test_input_required_result_elicitation", "--answer", "name=Ann");
  await hub.call("legacy__test_simple_text");
  await page.until(() => document.querySelector(".timeline-body .notice").hidden);
  await page.page.focus(".timeline-place");
  await page.key("Home");
  const lanes = new Set();
  const kinds = new Set();
  for (let step = 0; step < 60; step += 1) {
    const before = await page.page.evaluate(selected);
    await page.key("ArrowUp");
    await page.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const text = await page.page.evaluate(selected);
    if (text === before) break;
    lanes.add(text.split("  ·  ")[1]);
    kinds.add(text.split("  ·  ")[0]);
  }
  for (const lane of ["hub", "client tester", "server modern", "server legacy"]) check(lanes.has(lane), `there is a lane of ${lane}: ${[...lanes]}`);
  check(kinds.has("question"), `the question is a span: ${[...kinds]}`);
  await page.key("ArrowDown");
  for (const key of ["+", "-", "ArrowLeft", "ArrowRight", "End", "0"]) await page.key(key);
  await page.axe("the timeline");
  await page.key("Enter");
  await page.page.waitForSelector("#detail:not([hidden]) .message");
  check((await page.text("#detail-head h2")) !== "", "Enter opens the call of the span");
  // A click on a span opens its call: the place of the last one is where it was drawn.
  await page.page.click("#nav-timeline");
  await page.page.focus(".timeline-place");
  await page.key("Home");
  const box = await page.page.$eval(".timeline-place", (place) => { const { x, y, width, height } = place.getBoundingClientRect(); return { x, y, width, height }; });
  let hit = false;
  for (let y = box.y + 30; y < box.y + box.height - 4 && !hit; y += 6) {
    for (let x = box.x + box.width * 0.02; x < box.x + box.width && !hit; x += box.width / 60) {
      await page.page.mouse.move(x, y);
      hit = await page.page.$eval(".timeline-place", (place) => place.classList.contains("on-span"));
      if (hit) await page.page.mouse.click(x, y);
    }
  }
  check(hit, "the pointer finds a span");
  await page.until(() => location.hash.includes("#/calls") && location.hash.includes("call="));
  // The wheel and a drag move it.
  await page.page.click("#nav-timeline");
  await page.page.mouse.move(box.x + 300, box.y + 100);
  await page.page.mouse.wheel({ deltaY: -200 });
  await page.page.mouse.down();
  await page.page.mouse.move(box.x + 400, box.y + 100, { steps: 4 });
  await page.page.mouse.up();
  check(await page.page.evaluate(() => location.hash.startsWith("#/timeline")), "a drag opens nothing");
  check((await page.page.$eval("#timeline-live", (live) => live.getAttribute("aria-pressed"))) === "false", "a drag stops it");
  await page.finish("timeline");
}

/** A record file has a timeline, too. */
export async function checkTimelineOfRecord({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  const folder = mkdtempSync(join(tmpdir(), "timeline-"));
  const event = (seq, second, rest) => JSON.stringify({ seq, time: `2026-11-18T09:00:0${second}.000000Z`, ...rest });
  const lines = [
    JSON.stringify({ trunkline_record: 1, started: "2026-11-18T09:00:00Z", version: "0.1.0" }),
    event(1, 1, { kind: "call_started", call: "c1", client_name: "recorded", method: "tools/call", name: "a", server: "s", item: "a" }),
    event(2, 2, { kind: "input_requested", call: "c1", method: "elicitation/create", key: "k" }),
    event(3, 4, { kind: "input_answered", call: "c1", method: "elicitation/create", key: "k", by: "operator" }),
    event(4, 5, { kind: "call_ended", call: "c1", outcome: "ok", micros: 4_000_000, bytes_in: 1, bytes_out: 1 }),
  ];
  const file = join(folder, "file.jsonl");
  writeFileSync(file, `${lines.join("\n")}\n`);
  await (await page.page.$("#file")).uploadFile(file);
  await page.page.waitForSelector("#file-bar:not([hidden])");
  await page.page.click("#nav-timeline");
  await page.page.waitForSelector("#timeline-live[hidden]");
  await page.page.focus(".timeline-place");
  const seen = [];
  for (let step = 0; step < 3; step += 1) {
    await page.key("j");
    await page.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    seen.push(await page.page.evaluate(selected));
  }
  check(seen.some((text) => text.startsWith("question") && text.includes("2.00 s")), `${seen}`);
  check(seen.some((text) => text.includes("client recorded") && text.includes("4.00 s")), `${seen}`);
  await page.axe("the timeline of a file");
  await page.finish("timeline of a record");
}
