/**
 * Filter expressions over nodes: `zone=a and cpu.free>2 and taint=gpu`.
 *
 *   expression   comparisons joined by and, or, not and parentheses; and may be left out
 *   comparison   field = != ~ !~ > >= < <= value; `~` looks for a part, `*` in a value stands for anything
 *   a word       a part of the node's name
 *
 * `compiled` returns a predicate over the columns of GET /nodes, or throws a FilterError with the place of the mistake. Pure.
 */

import { isBytes } from "./format.js";
import { quantity } from "./quantities.js";

export class FilterError extends Error {
  constructor(message, from, to = from + 1) {
    super(message);
    this.from = from;
    this.to = to;
  }
}

const MEASURES = ["free", "requested", "allocatable", "use"];
const FIELDS = ["name", "zone", "taint", "ready", "cordoned", "pods", "fragmentation"];
const TOKEN = /\s*(?:(\(|\))|(!=|!~|>=|<=|=|~|>|<)|"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s()=!~<>"']+))/y;

/** A predicate (nodes, row) → boolean. An empty expression accepts every node. `nodes` has the columns, for names of resources. */
export function compiled(text, nodes) {
  if (text.trim() === "") return () => true;
  return new Parser(text, nodes).whole();
}

function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) {
      const at = from + text.slice(from).search(/\S/);
      const isQuote = text[at] === '"' || text[at] === "'";
      throw new FilterError(isQuote ? "This quotation mark is not closed." : `“${text[at]}” is not expected here.`, at);
    }
    const at = from + match[0].search(/\S/);
    const [, bracket, operator, double, single, word] = match;
    const kind = bracket ? "bracket" : operator ? "operator" : word !== undefined ? "word" : "quoted";
    const value = bracket ?? operator ?? word ?? (double !== undefined ? double.replace(/\\(.)/g, "$1") : single);
    found.push({ kind, value, from: at, to: TOKEN.lastIndex });
  }
  return found;
}

class Parser {
  constructor(text, nodes) {
    this.tokens = tokens(text);
    this.at = 0;
    this.end = text.trimEnd().length;
    this.nodes = nodes;
  }

  whole() {
    const predicate = this.either();
    const left = this.tokens[this.at];
    if (left) throw new FilterError(left.value === ")" ? "This parenthesis has no opening one." : `“${left.value}” is not expected here.`, left.from, left.to);
    return predicate;
  }

  either() {
    let first = this.both();
    while (this.isWord("or")) {
      const [a, b] = [first, (this.at++, this.both())];
      first = (nodes, row) => a(nodes, row) || b(nodes, row);
    }
    return first;
  }

  both() {
    let first = this.one();
    for (;;) {
      if (this.isWord("and")) this.at += 1;
      else if (this.at >= this.tokens.length || this.isWord("or") || this.tokens[this.at].value === ")") return first;
      const [a, b] = [first, this.one()];
      first = (nodes, row) => a(nodes, row) && b(nodes, row);
    }
  }

  one() {
    const token = this.tokens[this.at];
    if (!token) throw new FilterError("The expression ends too early: a comparison is missing, as zone=a.", this.end);
    if (this.isWord("not")) {
      this.at += 1;
      const inner = this.one();
      return (nodes, row) => !inner(nodes, row);
    }
    if (token.kind === "bracket") return this.inParentheses(token);
    if (token.kind === "operator" || this.isWord("and") || this.isWord("or")) {
      throw new FilterError(`Something is missing before “${token.value}”.`, token.from, token.to);
    }
    return this.comparison(token);
  }

  inParentheses(opening) {
    if (opening.value === ")") throw new FilterError("This parenthesis has no opening one.", opening.from);
    this.at += 1;
    const inner = this.either();
    if (this.tokens[this.at]?.value !== ")") throw new FilterError("This parenthesis is not closed.", opening.from);
    this.at += 1;
    return inner;
  }

  comparison(field) {
    this.at += 1;
    const operator = this.tokens[this.at];
    if (operator?.kind !== "operator") return part(field.value);
    this.at += 1;
    const value = this.tokens[this.at];
    if (!value || (value.kind !== "word" && value.kind !== "quoted")) {
      throw new FilterError(`A value is missing after “${field.value}${operator.value}”.`, operator.from, operator.to);
    }
    this.at += 1;
    return comparing(field, operator, value, this.nodes);
  }

  isWord(word) {
    const token = this.tokens[this.at];
    return token?.kind === "word" && token.value.toLowerCase() === word;
  }
}

function part(text) {
  const wanted = text.toLowerCase();
  return (nodes, row) => nodes.names[row].toLowerCase().includes(wanted);
}

function comparing(field, operator, value, nodes) {
  const name = field.value;
  if (/^labels?[.:]/.test(name)) {
    const key = name.replace(/^labels?[.:]/, "");
    return texts(operator, value, (columns, row) => {
      const labels = columns.labels[row] ?? {};
      return Object.hasOwn(labels, key) ? [labels[key]] : [];
    });
  }
  if (name === "label") return texts(operator, value, (columns, row) => labelForms(columns.labels[row]));
  if (name === "name") return texts(operator, value, (columns, row) => [columns.names[row]]);
  if (name === "zone") return texts(operator, value, (columns, row) => [columns.zones[row] ?? ""]);
  if (name === "taint") return texts(operator, value, (columns, row) => (columns.taints[row] ?? []).flatMap(taintForms));
  if (name === "ready") return truth(operator, value, (columns, row) => Boolean(columns.ready[row]));
  if (name === "cordoned" || name === "unschedulable") return truth(operator, value, (columns, row) => Boolean(columns.unschedulable[row]));
  if (name === "pods") return numbers(operator, plainNumber(value), (columns, row) => columns.pods[row]);
  if (name === "fragmentation") return numbers(operator, share(value), (columns, row) => columns.fragmentation[row]);
  return resource(field, operator, value, nodes);
}

function labelForms(labels) {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [key, `${key}=${value}`]);
}

/** "gpu=true:NoSchedule" is also found as its key, its effect, and the key with the value. */
export function taintForms(taint) {
  const [pair, effect] = splitLast(taint, ":");
  return [taint, pair, pair.split("=")[0], effect];
}

function splitLast(text, separator) {
  const at = text.lastIndexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function resource(field, operator, value, nodes) {
  const [resourceName, measure] = splitLast(field.value, ".");
  const known = Object.keys(nodes.allocatable);
  const found = known.find((each) => each === resourceName) ?? known.find((each) => each.endsWith(`/${resourceName}`));
  if (found === undefined || !MEASURES.includes(measure)) throw unknownField(field, known, found, measure);
  const isUse = measure === "use";
  const wanted = isUse ? share(value) : resourceAmount(found, value);
  return numbers(operator, wanted, (columns, row) => measured(columns, found, measure, row));
}

/** Whether a node has any of a resource, or has given some away. */
export function has(nodes, resourceName, row) {
  return (nodes.allocatable[resourceName]?.[row] ?? 0) > 0 || (nodes.requested[resourceName]?.[row] ?? 0) > 0;
}

/** Free, requested, allocatable or the share in use of a resource on a node. */
export function measured(nodes, resourceName, measure, row) {
  const total = nodes.allocatable[resourceName]?.[row] ?? 0;
  const taken = nodes.requested[resourceName]?.[row] ?? 0;
  if (measure === "free") return total - taken;
  if (measure === "requested") return taken;
  if (measure === "allocatable") return total;
  return total > 0 ? taken / total : taken > 0 ? 1 : 0;
}

function unknownField(field, known, found, measure) {
  const name = field.value;
  if (found !== undefined || known.includes(name)) {
    const base = found ?? name;
    const what = measure && found ? `“${measure}” is not measured.` : `“${name}” needs a measure.`;
    return new FilterError(`${what} Write ${MEASURES.map((each) => `${base}.${each}`).join(", ")}.`, field.from, field.to);
  }
  const all = [...FIELDS, "label.KEY", ...known.map((each) => `${each}.free`)];
  const near = nearest(name, all);
  const hint = near ? `Did you mean ${near}?` : `Fields are ${FIELDS.join(", ")}, label.KEY, and of a resource cpu.free, cpu.requested, cpu.allocatable, cpu.use.`;
  return new FilterError(`There is no field “${name}”. ${hint}`, field.from, field.to);
}

function texts(operator, value, read) {
  const matches = textMatcher(operator, value);
  const isNegated = operator.value.startsWith("!");
  return (nodes, row) => read(nodes, row).some(matches) !== isNegated;
}

function textMatcher(operator, value) {
  const wanted = value.value.toLowerCase();
  if (operator.value.endsWith("~")) return (each) => each.toLowerCase().includes(wanted);
  if (operator.value !== "=" && operator.value !== "!=") {
    throw new FilterError(`“${operator.value}” compares numbers. For text write =, !=, ~ (contains) or !~.`, operator.from, operator.to);
  }
  if (!wanted.includes("*")) return (each) => each.toLowerCase() === wanted;
  const pieces = wanted.split("*");
  return (each) => fits(each.toLowerCase(), pieces);
}

/** Whether the pieces follow each other in the text, the first at its start and the last at its end. */
function fits(text, pieces) {
  const first = pieces[0];
  const last = pieces.at(-1);
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return at <= text.length - last.length;
}

function truth(operator, value, read) {
  const wanted = { __proto__: null, true: true, yes: true, false: false, no: false }[value.value.toLowerCase()];
  if (wanted === undefined) throw new FilterError(`Write true or false instead of “${value.value}”.`, value.from, value.to);
  if (operator.value !== "=" && operator.value !== "!=") throw new FilterError("Only = and != compare true and false.", operator.from, operator.to);
  const isEqual = operator.value === "=";
  return (nodes, row) => (read(nodes, row) === wanted) === isEqual;
}

const COMPARISONS = {
  "=": (a, b) => Math.abs(a - b) < 1e-9 * Math.max(1, Math.abs(b)),
  "!=": (a, b) => Math.abs(a - b) >= 1e-9 * Math.max(1, Math.abs(b)),
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
};

function numbers(operator, wanted, read) {
  const compare = COMPARISONS[operator.value];
  if (!compare) throw new FilterError(`“${operator.value}” looks for text. Numbers are compared by =, !=, >, >=, < and <=.`, operator.from, operator.to);
  return (nodes, row) => compare(read(nodes, row), wanted);
}

function plainNumber(value) {
  const found = quantity(value.value);
  if (found === null || found.suffix === "%") throw new FilterError(`“${value.value}” is not a number.`, value.from, value.to);
  return found.number;
}

function share(value) {
  const found = quantity(value.value);
  if (found === null || !["", "%"].includes(found.suffix)) throw new FilterError(`“${value.value}” is not a share. Write 80%, or 0.8.`, value.from, value.to);
  // 80 can only mean per cent: a share is at most one, but for overcommitted nodes, which are written with the sign.
  return found.suffix === "" && found.number > 1 ? found.number / 100 : found.number;
}

function resourceAmount(resourceName, value) {
  const found = quantity(value.value);
  if (found === null || found.suffix === "%") throw new FilterError(`“${value.value}” is not an amount of ${resourceName}.`, value.from, value.to);
  if (resourceName === "cpu") return found.number * 1000;
  if (isBytes(resourceName) && found.suffix === "" && found.number !== 0) {
    throw new FilterError(`An amount of ${resourceName} needs a unit: ${value.value}Gi or ${value.value}Mi.`, value.from, value.to);
  }
  return found.number;
}

/** The most similar of the names; undefined where none is similar. */
export function nearest(name, names) {
  const wanted = name.toLowerCase();
  let best;
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const each of names) {
    const distance = edits(wanted, each.toLowerCase());
    if (distance < least) [best, least] = [each, distance];
  }
  return best;
}

function edits(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length];
}
