// The pages as such: the navigation, addresses, the keys, and where the focus is.

import { ConsolePage, check } from "./page.mjs";

const shown = () => [...document.querySelectorAll("#pages > main")].filter((page) => !page.hidden).map((page) => page.id).join();

/** Every page is reached by the navigation, by a key and by its address, and the focus is in it. */
export async function checkNavigation({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  const links = await page.page.$$eval("#nav a:not([hidden])", (all) => all.map((link) => link.id.slice("nav-".length)));
  check(links.length >= 2, `the navigation has pages: ${links}`);
  const isAt = async (id) => {
    await page.until((wanted) => location.hash.startsWith(`#/${wanted}`), id);
    await page.until(`(${shown})() === "page-${id}"`);
    const inside = await page.page.evaluate((wanted) => document.getElementById(`page-${wanted}`).contains(document.activeElement), id);
    check(inside, `the focus is in ${id}`);
    const current = await page.page.$eval("#nav a[aria-current=page]", (link) => link.id);
    check(current === `nav-${id}`, `the navigation shows ${current} for ${id}`);
  };
  for (const [at, id] of links.entries()) {
    await page.key(String(at + 1));
    await isAt(id);
    await page.page.click(`#nav-${links[(at + 1) % links.length]}`);
    await isAt(links[(at + 1) % links.length]);
    await page.page.evaluate((to) => { location.hash = `#/${to}`; }, id);
    await isAt(id);
  }
  await page.page.evaluate(() => { location.hash = "#/no-such-page/%"; });
  await isAt("calls");
  await page.finish("navigation");
}

/** The address has the filter and the opened call, and leads back to them after a reload and a step back. */
export async function checkDeepLinks({ browser, hub }) {
  const page = await ConsolePage.open(browser, hub.newLink());
  await page.live();
  await hub.call("modern__test_simple_text");
  await page.openFirst("tool:test_simple_text status:ok");
  const { hash } = new URL(page.page.url());
  check(/^#\/calls\?filter=.*&call=/.test(hash), `the address has the filter and the call: ${hash}`);
  await page.key("1");
  await page.until(() => location.hash.startsWith("#/overview"));
  await page.page.goBack();
  await page.page.waitForSelector("#detail:not([hidden]) .message");
  await page.page.reload();
  await page.live();
  await page.page.waitForSelector("#detail:not([hidden]) .message");
  check((await page.text("#detail-head h2")) === "modern__test_simple_text", "the call is opened again");
  check((await page.page.$eval("#filter", (field) => field.value)) === "tool:test_simple_text status:ok", "with the filter");
  check(new URL(page.page.url()).hash === hash, `the address stays: ${page.page.url()}`);
  await page.key("Escape");
  await page.until(() => !location.hash.includes("call="));
  await page.finish("deep links");
}
