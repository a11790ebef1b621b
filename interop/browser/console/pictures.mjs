// Pictures of every page, in both themes and both widths, to be looked at.

import { join } from "node:path";

import { ConsolePage } from "./page.mjs";

export async function takePictures({ browser, hub, pictures }) {
  for (const [width, height] of [[1280, 720], [400, 800]]) {
    for (const theme of ["light", "dark"]) {
      const page = await ConsolePage.open(browser, hub.newLink(), { width, height });
      await page.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
      await page.live();
      const picture = async (what) => {
        await page.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
        await page.page.screenshot({ path: join(pictures, `${what}-${width}-${theme}.png`) });
      };
      await hub.trunklineAsync("call", "--revision", "2025-06-18", hub.url, "modern__test_input_required_result_elicitation", "--answer", "name=Ann");
      for (const tool of ["modern__test_tool_with_progress", "legacy__test_simple_text", "hostile__markup", "hostile__proto", "modern__test_error_handling"]) {
        await hub.call(tool, {}, { progressToken: 1 });
      }
      await picture("calls");
      await page.openFirst("tool:elicitation");
      await picture("call");
      await page.key("Escape");
      await page.filter("");
      await page.key("n");
      await picture("notifications");
      await page.key("1");
      await page.until(() => document.querySelectorAll("#overview-servers tr").length >= 4);
      await page.until(() => document.querySelector("#headline").textContent.includes("calls a minute"));
      await picture("overview");
      for (const [id, hash, ready] of [
        ["servers", "#/servers/hostile", "#server-log .log-line"], ["server-tools", "#/servers/many/tools", "#server-items tr"],
        ["sessions", "#/sessions", "#session-rows tr"], ["cost", "#/cost", "#cost-servers tr"],
      ]) {
        await page.page.evaluate((to) => { location.hash = to; }, hash);
        await page.page.waitForSelector(ready);
        await picture(id);
      }
      await page.key("?");
      await picture("help");
      await page.page.close();
    }
  }
}
