// URI templates (RFC 6570) as far as resources use them.

/** @typedef {{operator: string, names: string[]}} TemplateExpression */

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

/**
 * The variables of a template, each once.
 * @param {string} template
 * @returns {string[]}
 */
export function templateVariables(template) {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list]) => namesOf(list ?? ""));
  return [...new Set(names)];
}

/** @param {string} list */
function namesOf(list) {
  return list.split(",").map((name) => name.trim().replace(/(\*|:\d+)$/, "")).filter(Boolean);
}

/**
 * Puts values into a template; a variable without one is left out.
 * @param {string} template
 * @param {Map<string, string>} values
 */
export function expandTemplate(template, values) {
  return template.replace(EXPRESSION, (_, /** @type {string} */ operator, /** @type {string} */ list) => {
    const given = namesOf(list).flatMap((name) => {
      const value = values.get(name);
      return value === undefined || value === "" ? [] : [{ name, value: encoded(value, operator === "+" || operator === "#") }];
    });
    if (given.length === 0) return "";
    switch (operator) {
      case "?": case "&": return operator + given.map(({ name, value }) => `${name}=${value}`).join("&");
      case ";": return given.map(({ name, value }) => `;${name}=${value}`).join("");
      case "/": case ".": return given.map(({ value }) => operator + value).join("");
      case "#": return `#${given.map(({ value }) => value).join(",")}`;
      default: return given.map(({ value }) => value).join(",");
    }
  });
}

/**
 * @param {string} value
 * @param {boolean} keepsReserved
 */
function encoded(value, keepsReserved) {
  if (keepsReserved) return encodeURI(value);
  return encodeURIComponent(value).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}
