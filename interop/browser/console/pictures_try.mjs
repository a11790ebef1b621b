// Pictures of the pages on which one acts, in both themes and both widths, to be looked at.

import { join } from "node:path";

import { ConsolePage } from "./page.mjs";
import { LegacyClient } from "./questions.mjs";

export async function takeTryPictures({ browser, hub, pictures, sdk }) {
  for (const [width, height] of [[1280, 720], [400, 800]]) {
    for (const theme of ["light", "dark"]) {
      const page = await ConsolePage.open(browser, hub.newLink(), { width, height });
      await page.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
      await page.live();
      const picture = async (what) => {
        await page.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
        await page.page.screenshot({ path: join(pictures, `${what}-${width}-${theme}.png`) });
      };
      const open = async (kind, id) => {
        await page.page.evaluate((hash) => { location.hash = hash; }, `#/try/${kind}/${encodeURIComponent(id)}`);
        await page.until((wanted) => document.querySelector("#page-try .try-title h2 bdi")?.textContent === wanted, id);
      };
      const done = async (outcome) => {
        await page.page.click("#try-send");
        await page.until((wanted) => document.querySelector("#try-status").textContent === wanted, outcome);
      };
      await page.page.click("#nav-try");
      await page.until(() => document.querySelectorAll(".try-option").length > 10);
      await picture("try");
      await open("tools", "hostile__form");
      await page.page.click("#try-send");
      await picture("try-form");
      await open("tools", "hostile__table");
      await done("ok");
      await picture("try-table");
      await open("tools", "modern__test_image_content");
      await done("ok");
      await page.until(() => document.querySelector("#try-result img")?.naturalWidth > 0);
      await picture("try-image");
      await open("tools", "modern__test_elicitation_sep1330_enums");
      await done("the server asks");
      await page.page.evaluate(() => document.querySelector(".question-card").scrollIntoView());
      await picture("try-question");
      await open("prompts", "modern__test_prompt_with_arguments");
      await picture("try-prompt");
      const client = await LegacyClient.connect(sdk, hub.url, "Cursor");
      const result = client.call("modern__test_input_required_result_elicitation");
      await page.until(() => document.querySelector("#nav-questions").textContent === "Questions (1)");
      await page.page.click("#nav-questions");
      await page.page.waitForSelector(".question-card");
      await picture("questions");
      await page.page.click("#nav-timeline");
      await hub.call("modern__test_tool_with_progress");
      await hub.call("legacy__test_simple_text");
      await hub.call("hostile__proto");
      await page.page.focus(".timeline-place");
      await page.key("ArrowDown");
      await picture("timeline-live");
      client.asked[0].answer({ action: "accept", content: { name: "Ann" } });
      await result;
      await page.key("Home");
      await picture("timeline");
      await client.close();
      await page.page.close();
    }
  }
}
