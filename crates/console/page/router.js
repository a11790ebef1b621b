// Which page is shown: by the address, the navigation and the keys. The focus goes into the page that is shown.

import { byId, element, pageLink } from "./dom.js";
import { registeredPages } from "./registry.js";
import { parseRoute, routeHash } from "./route.js";

/** @import { ConsoleApp } from "./app.js" */
/** @import { KeyAction } from "./keys.js" */
/** @import { PageModule, PageView } from "./registry.js" */

/**
 * @typedef {object} PageEntry
 * @property {PageModule} page
 * @property {HTMLElement} root
 * @property {HTMLAnchorElement} link
 * @property {PageView | undefined} view
 */

export class Router {
  /** @type {PageEntry[]} */
  #entries = [];
  /** @type {PageEntry | undefined} */
  #current;
  #app;
  #timer = 0;
  #isStarted = false;
  #isRefreshing = false;

  /** @param {ConsoleApp} app */
  constructor(app) {
    this.#app = app;
    for (const page of registeredPages()) {
      const root = element("main", { id: `page-${page.id}`, class: `page ${page.id}-page`, tabindex: 0, hidden: true });
      const link = pageLink(page.title, routeHash(page.id), { id: `nav-${page.id}` });
      this.#entries.push({ page, root, link, view: undefined });
    }
    byId("pages").replaceChildren(...this.#entries.map(({ root }) => root));
    byId("nav").replaceChildren(...this.#entries.map(({ link }) => link));
    addEventListener("hashchange", () => this.#route());
    document.addEventListener("visibilitychange", () => this.#refresh());
  }

  /** Shows what the address names, once it is known which pages this session has. Each page begins anew. */
  start() {
    this.#isStarted = true;
    this.view?.hide?.();
    this.#current = undefined;
    for (const entry of this.#entries) {
      entry.view = undefined;
      entry.root.replaceChildren();
    }
    for (const { page, link } of this.#entries) {
      link.hidden = !this.#isOffered(page);
      if (!link.hidden) page.start?.(this.#app);
    }
    this.#route();
  }

  /** The page that is shown. */
  get view() {
    return this.#current?.view;
  }

  /**
   * Shows a page, and enters its address into the history.
   * @param {string} page
   * @param {string[]} [path]
   * @param {Record<string, string | undefined>} [query]
   */
  go(page, path, query) {
    const hash = routeHash(page, path, query);
    if (location.hash === hash) this.#route();
    else location.hash = hash;
  }

  /**
   * Notes in the address what the page shows, without a step in the history. The navigation leads back to it.
   * @param {string[]} [path]
   * @param {Record<string, string | undefined>} [query]
   */
  note(path, query) {
    if (!this.#current) return;
    const hash = routeHash(this.#current.page.id, path, query);
    history.replaceState(null, "", hash);
    this.#current.link.href = hash;
  }

  /** The keys of the pages and of the page that is shown. @returns {KeyAction[]} */
  keys() {
    const offered = this.#entries.filter(({ link }) => !link.hidden);
    const pages = offered.map(({ page, link }, at) => ({ key: String(at + 1), text: page.title, run: () => this.#open(link) }));
    return [...(this.view?.keys ?? []), ...pages];
  }

  /** Moves the focus into the page. */
  focus() {
    if (this.view?.focus) this.view.focus();
    else this.#current?.root.focus({ preventScroll: true });
  }

  /** @param {HTMLAnchorElement} link */
  #open(link) {
    if (location.hash === link.hash) this.focus();
    else location.hash = link.hash;
  }

  #route() {
    if (!this.#isStarted) return;
    const route = parseRoute(location.hash);
    const offered = this.#entries.filter(({ page }) => this.#isOffered(page));
    const named = offered.find(({ page }) => page.id === route.page);
    const entry = named ?? offered.find(({ page }) => page.isFirst) ?? offered[0];
    if (!entry) return;
    if (entry !== named) history.replaceState(null, "", routeHash(entry.page.id));
    this.#show(entry);
    entry.link.href = location.hash;
    entry.view?.show?.(entry === named ? route : parseRoute(location.hash));
    this.focus();
    this.#app.requestDraw();
    this.#refresh();
  }

  /** @param {PageEntry} entry */
  #show(entry) {
    if (this.#current === entry) return;
    this.#current?.view?.hide?.();
    this.#current = entry;
    for (const { page, root, link } of this.#entries) {
      root.hidden = page !== entry.page;
      if (page === entry.page) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    entry.link.scrollIntoView({ block: "nearest", inline: "nearest" });
    document.title = `${entry.page.title} · trunkline`;
    entry.view ??= entry.page.create(this.#app, entry.root);
  }

  /** Reads what the page shows beside the stream, now and as long as it is in sight. */
  #refresh() {
    clearTimeout(this.#timer);
    const view = this.view;
    if (!view?.refresh || this.#isRefreshing || document.hidden || !this.#app.isLive) return;
    this.#isRefreshing = true;
    // What fails is tried again, and the stream shows whether the hub is there.
    void view.refresh().catch(() => undefined).finally(() => {
      this.#isRefreshing = false;
      this.#app.requestDraw();
      if (view !== this.view) this.#refresh();
      else if (view.interval) this.#timer = setTimeout(() => this.#refresh(), view.interval);
    });
  }

  /** @param {PageModule} page */
  #isOffered(page) {
    return page.isOffered?.(this.#app.isLive ? this.#app.report : undefined) ?? true;
  }
}
