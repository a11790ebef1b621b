// The console in the browsers of Debian: `node main.mjs TRUNKLINE EVERYTHING_SERVER FOLDER_FOR_PICTURES PAGE FOLDER_OF_SDK [BROWSER [CHECK …]]`.

import { checkCalls, checkCopies, checkHostileTexts, checkNotifications, checkRecords } from "./calls.mjs";
import { Hub } from "./hub.mjs";
import { checkCost, checkHostileServer, checkManyTools, checkOverview, checkReadOnly, checkServers, checkSessions } from "./hub_pages.mjs";
import { launch } from "./page.mjs";
import { checkDeepLinks, checkNavigation } from "./pages.mjs";
import { pageSize } from "./size.mjs";
import { takePictures } from "./pictures.mjs";
import { takeTryPictures } from "./pictures_try.mjs";
import { checkClientQuestions } from "./questions.mjs";
import { checkReconnection, checkRate } from "./stream.mjs";
import { checkAccess, checkReload } from "./access.mjs";
import { checkTimeline, checkTimelineOfRecord } from "./timeline.mjs";
import { checkFirstResult, checkForms, checkEndlessSchema, checkOwnQuestions, checkProgress, checkPromptsAndResources, checkResults, checkTryReadOnly } from "./try.mjs";

const [trunkline, server, pictures, source, sdk, only, ...wanted] = process.argv.slice(2);
const CHECKS = [
  checkFirstResult, checkForms, checkEndlessSchema, checkResults, checkProgress, checkOwnQuestions, checkPromptsAndResources, checkTryReadOnly, checkClientQuestions, checkTimeline, checkTimelineOfRecord,
  checkNavigation, checkDeepLinks, checkOverview, checkServers, checkManyTools, checkHostileServer, checkSessions, checkReadOnly, checkCost,
  checkCalls, checkCopies, checkNotifications, checkHostileTexts, checkRecords, checkReload, checkAccess, checkReconnection, checkRate,
];

console.log(pageSize(source));
let failed = 0;
for (const name of ["chromium", "firefox"].filter((name) => !only || name === only)) {
  const hub = await Hub.start(trunkline, server);
  const browser = await launch(name);
  for (const check of CHECKS.filter((check) => wanted.length === 0 || wanted.includes(check.name))) {
    const started = performance.now();
    try {
      const figures = await check({ browser, hub, name, pictures, sdk });
      console.log(`${name} ${check.name}: passed in ${((performance.now() - started) / 1000).toFixed(1)} s${figures ? `; ${figures}` : ""}`);
    } catch (error) {
      failed += 1;
      console.log(`${name} ${check.name}: FAILED: ${error.stack}`);
    }
    // An open page holds one of the few connections that a browser makes to a host.
    for (const page of (await browser.pages()).slice(1)) await page.close();
  }
  if (name === "chromium" && (wanted.length === 0 || wanted.includes("pictures"))) {
    await takePictures({ browser, hub, pictures });
    await takeTryPictures({ browser, hub, pictures, sdk });
  }
  await browser.close();
  const code = await hub.stop();
  if (code !== 0) {
    failed += 1;
    console.log(`the hub ended with ${code}:\n${hub.log}`);
  }
}
// A check that failed may have left a server open, which would keep this process.
process.exit(failed === 0 ? 0 : 1);
