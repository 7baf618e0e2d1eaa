/** Plain data as YAML to paste: the block style of kubectl. Strings that YAML would read as something else are quoted. */

const AMBIGUOUS = /^(|~|null|true|false|yes|no|on|off|y|n|[-+.\d][-+.\d_:e]*|0[xo][\da-f]*|[-+]?\.(inf|nan))$/i;
const PLAIN = /^[\w/.][\w./@ -]*$/;

/** A document: objects, lists and scalars. */
export function written(value) {
  if (isEmpty(value) || !isNested(value)) return `${inline(value)}\n`;
  return `${lines(value, "").join("\n")}\n`;
}

function isNested(value) {
  return typeof value === "object" && value !== null;
}

function isEmpty(value) {
  return isNested(value) && Object.keys(value).length === 0;
}

function inline(value) {
  if (Array.isArray(value)) return "[]";
  if (isNested(value)) return "{}";
  if (typeof value !== "string") return String(value);
  const isPlain = PLAIN.test(value) && !AMBIGUOUS.test(value) && !value.endsWith(" ");
  return isPlain ? value : JSON.stringify(value);
}

function lines(value, indent) {
  return Array.isArray(value) ? listLines(value, indent) : objectLines(value, indent);
}

function listLines(items, indent) {
  return items.flatMap((item) => {
    if (!isNested(item) || isEmpty(item)) return [`${indent}- ${inline(item)}`];
    const [first, ...rest] = lines(item, `${indent}  `);
    return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest];
  });
}

function objectLines(object, indent) {
  return Object.entries(object).flatMap(([key, item]) => {
    const name = inline(key);
    if (!isNested(item) || isEmpty(item)) return [`${indent}${name}: ${inline(item)}`];
    // Lists stand at the indentation of their key, as kubectl prints them.
    return [`${indent}${name}:`, ...lines(item, Array.isArray(item) ? indent : `${indent}  `)];
  });
}
