// Addresses within the console: `#/calls?filter=server%3Agit`, `#/servers/git`.

/**
 * @typedef {object} Route
 * @property {string} page
 * @property {string[]} path what follows the page
 * @property {URLSearchParams} query
 */

/**
 * Reads the address behind `#`.
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decoded);
  return { page, path: rest, query: new URLSearchParams(query) };
}

/**
 * Writes an address; parameters without a value are left out.
 * @param {string} page
 * @param {string[]} [path]
 * @param {Record<string, string | undefined>} [query]
 */
export function routeHash(page, path = [], query = {}) {
  const set = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const text = new URLSearchParams(set).toString();
  return `#/${[page, ...path].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
