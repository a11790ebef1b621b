// What the page shows of calls.

import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { ConsolePage, check } from "./page.mjs";

const ASKING = "test_input_required_result_elicitation";

/** A legacy client calls a modern server that asks a question, and the other way: seen on both wires. */
export async function checkCalls({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await page.axe("the empty list");
  for (const [client, server, tool] of [["2025-06-18", "modern", ASKING], ["2026-07-28", "legacy", "test_elicitation"]]) {
    const args = tool === ASKING ? ["--answer", "name=Ann"] : ["message=hello", "--answer", "username=Ann", "--answer", "email=ann@example.com"];
    const done = await hub.trunklineAsync("call", "--revision", client, hub.url, `${server}__${tool}`, ...args);
    check(done.status === 0, `${client} to ${server}: ${done.output}`);
    await page.filter(`server:${server} tool:${tool}`);
    await page.until(() => [...document.querySelectorAll("#call-grid .rows .row:not([hidden]) .outcome")].some((cell) => cell.textContent === "ok"));
    await page.openFirst(`server:${server} tool:${tool}`);
    const titles = (side) => page.page.$$eval(`.pair > .message:${side}-child h4`, (all) => all.map((title) => title.firstChild.textContent));
    const [left, right] = [await titles("first"), await titles("last")];
    const asked = (all) => all.some((title) => title === "elicitation/create" || title.includes("input required"));
    check(asked(left) && asked(right), `the question is on both wires of ${client} to ${server}: ${left} | ${right}`);
    const chips = await page.page.$$eval(".wire-heads .chip", (all) => all.map((chip) => chip.textContent));
    check(chips.includes(client), `the revision of the client is shown: ${chips}`);
    check(chips.includes(server === "modern" ? "2026-07-28" : "2025-06-18"), `the revision of the server is shown: ${chips}`);
    const marks = await page.page.$$eval("#detail .line", (all) => [...new Set(all.map((line) => line.className))]);
    for (const mark of ["changed", "added"]) check(marks.includes(`line ${mark}`), `members are marked as ${mark}: ${marks}`);
    await page.axe("an opened call");
  }
  await hub.call("modern__test_error_handling");
  await page.filter("status:error");
  await page.until(() => document.querySelector("#call-grid .rows .row:not([hidden])[data-outcome=tool_error]") !== null);
  check((await page.outcomes()).every((outcome) => outcome.includes("error")), "the filter shows errors alone");
  await page.filter(">10m");
  check((await page.outcomes()).length === 0, "no call took ten minutes");
  await page.filter("-server:modern -server:legacy -server:hostile -server:many tool:_");
  check((await page.outcomes()).length === 0, "negated fields leave nothing");
  await page.filter(">soon");
  check((await page.text("#filter-problem")).includes("duration"), "a malformed filter is explained");
  await page.key("Escape");
  await page.filter("");
  await page.key("1");
  await page.until(() => [...document.querySelectorAll("#overview-servers tr")].some((row) => row.textContent.includes("broken") && row.textContent.includes("no such module")));
  await page.axe("the overview");
  await page.key("?");
  await page.axe("the help");
  await page.finish("calls");
}

/** The copied commands run, and return the same. */
export async function checkCopies({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  const word = `it's "${Date.now()}" $HOME \`x\` \\`;
  await hub.call("modern__json_schema_2020_12_tool", { name: word, email: "ann@example.com" });
  await page.openFirst("tool:json_schema status:ok");
  for (const id of ["copy-curl", "copy-command", "copy-json", "export-call"]) {
    if (id !== "export-call") await page.page.click(`#${id}`);
  }
  const [curl, command, json] = await page.page.evaluate(() => window.copied);
  const path = `${dirname(hub.binary)}:${process.env.PATH}`;
  for (const text of [curl, command]) {
    const done = spawnSync("sh", ["-c", text], { encoding: "utf8", env: { ...process.env, PATH: path }, cwd: hub.folder });
    check(done.status === 0 && !done.stdout.includes('"error"'), `${text}: ${done.stdout} ${done.stderr}`);
    await page.until((wanted) => Number(document.querySelector("#counts").textContent.split(" ")[0]) >= wanted, text === curl ? 2 : 3);
  }
  check(JSON.parse(json).messages.length >= 4, "the JSON has the messages of both wires");
  // What was sent is what was copied.
  check(JSON.parse(json).messages[0].message.params.arguments.name === word, json);
  await page.finish("copies");
}

/** A notification leads to its call. */
export async function checkNotifications({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await hub.call("modern__test_tool_with_progress", {}, { progressToken: 5 });
  await page.key("n");
  await page.filter("progress");
  await page.until(() => document.querySelector("#note-grid .rows .row:not([hidden]) .jump")?.textContent.includes("progress"));
  await page.axe("the notifications");
  await page.page.focus("#note-grid");
  await page.key("Home");
  await page.key("Enter");
  await page.page.waitForSelector("#detail:not([hidden]) .message.found");
  check((await page.text("#detail-head h2")) === "modern__test_tool_with_progress", "the call of the notification is opened");
  check((await page.text(".message.found h4")).startsWith("notifications/progress"), "at the notification itself");
  await page.finish("notifications");
}

/** Texts of a hostile server are text. */
export async function checkHostileTexts({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await hub.call("hostile__markup");
  await hub.call("hostile__proto");
  await page.openFirst("server:hostile tool:markup");
  check((await page.text("#detail-body")).includes("onerror="), "the result is shown as it came");
  await page.openFirst("server:hostile tool:proto");
  await page.key("n");
  await page.filter("onerror");
  await page.until(() => [...document.querySelectorAll("#note-grid .rows .row:not([hidden])")].length >= 2);
  await page.key("1");
  await page.until(() => document.querySelectorAll("#overview-servers tr").length >= 4);
  const found = await page.page.evaluate(() => ({
    pwned: window.pwned, polluted: {}.polluted, marked: document.querySelectorAll("img, #hostile, body script").length,
  }));
  check(found.pwned === undefined && found.polluted === undefined && found.marked === 0, JSON.stringify(found));
  await page.finish("hostile texts");
}

/** A recording is saved, and shows the same elsewhere. */
export async function checkRecords({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  const folder = mkdtempSync(join(tmpdir(), "record-"));
  await page.page.evaluate(() => {
    // What the page saves, without the download of the browser.
    window.saved = [];
    HTMLAnchorElement.prototype.click = function click() {
      window.saved.push(fetchBlob(this.href));
    };
    const blobs = new Map();
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => { const url = make(blob); blobs.set(url, blob); return url; };
    window.fetchBlob = (url) => blobs.get(url).text();
  });
  await page.page.click("#clear");
  await page.key("r");
  await hub.call("modern__test_simple_text");
  await page.openFirst("tool:test_simple_text status:ok");
  await page.until(() => document.querySelectorAll("#detail .message").length === 4);
  await page.key("r");
  const text = await page.page.evaluate(() => window.saved[0]);
  const file = join(folder, "saved.jsonl");
  writeFileSync(file, text);
  check(text.startsWith('{"trunkline_record":1'), text.slice(0, 100));
  const seen = text.split("\n").filter((line) => line.includes("test_simple_text")).length;
  check(seen >= 3, `the file has the call and its messages: ${text}`);

  const input = await page.page.$("#file");
  await input.uploadFile(file);
  await page.page.waitForSelector("#file-bar:not([hidden])");
  await page.openFirst("tool:test_simple_text");
  check((await page.page.$$("#detail .message")).length === 4, "the file shows both wires");
  writeFileSync(file, '{"trunkline_record":99}\n');
  await input.uploadFile(file);
  await page.until(() => document.querySelector("#toast").textContent.includes("newer"));
  await page.finish("records");
}
