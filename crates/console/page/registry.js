// The pages of the console. A module of a page registers it when it is loaded; pages.js loads them in the order of the navigation.

/** @import { HubReport } from "./types.d.ts" */
/** @import { ConsoleApp } from "./app.js" */
/** @import { KeyAction, HelpSection } from "./keys.js" */
/** @import { Route } from "./route.js" */

/**
 * What a page shows. It is made once, when the page is shown for the first time, with an empty element of its own.
 * @typedef {object} PageView
 * @property {() => void} draw draws what changed in the store; in a frame of its own, and only while the page is shown
 * @property {(route: Route) => void} [show] takes the rest of the address, whenever the page is shown or its address changes
 * @property {() => void} [hide] when another page is shown
 * @property {() => void} [focus] moves the focus into the page, or else the page itself gets it
 * @property {() => void} [escape] closes the innermost of what is open
 * @property {() => Promise<void>} [refresh] reads what is not in the stream: when the page is shown, and again after each `interval`
 * @property {number} [interval] in milliseconds
 * @property {KeyAction[]} [keys] those of this page alone
 * @property {HelpSection[]} [help] further sections of the list of keys
 */

/**
 * @typedef {object} PageModule
 * @property {string} id its address is `#/id`
 * @property {string} title in the navigation
 * @property {boolean} [isFirst] whether it is shown where the address names none
 * @property {(report: HubReport | undefined) => boolean} [isOffered] whether this session has it; there is no report in a record file
 * @property {(app: ConsoleApp) => void} [start] is called once if this session has the page, before it is shown
 * @property {(app: ConsoleApp, root: HTMLElement) => PageView} create
 */

/** @type {PageModule[]} */
const pages = [];

/**
 * Adds a page at the end of the navigation.
 * @param {PageModule} page
 */
export function registerPage(page) {
  pages.push(page);
}

/** @returns {ReadonlyArray<PageModule>} */
export function registeredPages() {
  return pages;
}
