// Elements of the page. All text becomes text nodes, so that no message of a peer is ever read as markup.

/**
 * The attributes that the page sets: none of them can load, run or style anything.
 * @type {ReadonlySet<string>}
 */
const ALLOWED = new Set([
  "class", "id", "role", "title", "type", "tabindex", "for", "name", "value", "placeholder", "autocomplete",
  "spellcheck", "hidden", "disabled", "accept", "scope", "download", "lang", "open", "colspan",
]);

/**
 * Makes an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes]
 * @param {...(Node | string | undefined)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (!ALLOWED.has(name) && !name.startsWith("aria-") && !name.startsWith("data-")) {
      throw new Error(`the page sets no attribute ${name}`);
    }
    made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== undefined) made.append(child);
  return made;
}

/**
 * Makes a button.
 * @param {string} label
 * @param {string} title
 * @param {() => void} action
 * @param {Record<string, string | boolean | undefined>} [attributes]
 */
export function button(label, title, action, attributes = {}) {
  const made = element("button", { type: "button", title, ...attributes }, label);
  made.addEventListener("click", action);
  return made;
}

/**
 * Makes a link to a page of the console.
 * @param {string} text
 * @param {string} hash
 * @param {Record<string, string | boolean | undefined>} [attributes]
 */
export function pageLink(text, hash, attributes = {}) {
  if (!hash.startsWith("#/")) throw new Error(`${hash} is no address of a page`);
  const made = element("a", attributes, text);
  made.href = hash;
  return made;
}

/**
 * Finds an element of the page that is always there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/**
 * Sets the text of an element only when it differs, which spares the browser a layout.
 * @param {Element} target
 * @param {string} text
 */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Announces a short message to the user, also to screen readers.
 * @param {string} text
 */
export function announce(text) {
  const toast = byId("toast");
  toast.textContent = text;
  toast.classList.add("shown");
  clearTimeout(Number(toast.dataset.timer));
  toast.dataset.timer = String(setTimeout(() => toast.classList.remove("shown"), 2600));
}
