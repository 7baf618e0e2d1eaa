/** Amounts, times and counts as people write them. Pure: no clock of its own, no DOM. */

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** 1234567 → "1,234,567". */
export function count(number) {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 node", "5,000 nodes". */
export function counted(number, noun, plural = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : plural}`;
}

function rounded(number) {
  const digits = Math.abs(number) >= 100 ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return Number(number.toFixed(digits)).toString();
}

/** Thousandths of a core → "2 cores", "250m". */
export function cpu(milli) {
  if (Math.abs(milli) < 1000 && milli !== 0) return `${Math.round(milli)}m`;
  const cores = rounded(milli / 1000);
  return `${cores} ${cores === "1" ? "core" : "cores"}`;
}

/** Bytes → "16 GiB". */
export function bytes(number) {
  let power = 0;
  let left = number;
  while (Math.abs(left) >= 1024 && power < BINARY.length - 1) {
    left /= 1024;
    power += 1;
  }
  return `${rounded(left)} ${BINARY[power]}B`;
}

export function isBytes(resource) {
  return resource === "memory" || resource.startsWith("ephemeral-storage") || resource.startsWith("hugepages-");
}

/** An amount of any resource, with its unit. */
export function amount(resource, number) {
  if (number === undefined || number === null) return "–";
  if (resource === "cpu") return cpu(number);
  return isBytes(resource) ? bytes(number) : count(number);
}

/** A share of one → "83 %". */
export function percent(share) {
  return Number.isFinite(share) ? `${Math.round(share * 100)} %` : "–";
}

/** Signed points: "+20", "−3", "±0". */
export function signed(number) {
  if (!number) return "±0";
  return `${number > 0 ? "+" : "−"}${count(Math.abs(number))}`;
}

/** Seconds → "3 s", "4 min", "2 h", "5 d"; number and unit stay on one line. */
export function duration(seconds) {
  if (seconds < 0.001) return "under 1 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)}\u00a0ms`;
  if (seconds < 90) return `${rounded(Math.round(seconds))}\u00a0s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)}\u00a0min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)}\u00a0h`;
  return `${Math.round(seconds / 86400)}\u00a0d`;
}

/** A time of the API (RFC 3339, or seconds since 1970) as a Date; null where it is none. */
export function moment(time) {
  if (time === undefined || time === null || time === "") return null;
  const date = typeof time === "number" ? new Date(time * 1000) : new Date(time);
  return Number.isNaN(date.getTime()) ? null : date;
}

const two = (number) => String(number).padStart(2, "0");

/** "08:21:03", with the day where it is not the day of `now`. */
export function clock(time, now = new Date()) {
  const date = moment(time);
  if (date === null) return "";
  const hours = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return date.toDateString() === now.toDateString() ? hours : `${day(date)} ${hours}`;
}

function day(date) {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "4 min ago", "in 12 s", "now". */
export function ago(time, now = new Date()) {
  const date = moment(time);
  if (date === null) return "";
  const seconds = (now.getTime() - date.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** "a, b and c"; `limit` names at most that many: "a, b and 7 more". */
export function listed(names, limit = Infinity, total = names.length) {
  const shown = names.slice(0, limit);
  const left = total - shown.length;
  if (left > 0) return `${shown.join(", ")} and ${count(left)} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : (shown[0] ?? "");
}

/** Control and direction-changing characters made visible: a name cannot pretend to be another. */
export function visible(text) {
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (each) =>
    `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
