/** Kubernetes quantities as numbers: "500m", "16Gi", "2", "80%". Pure. */

const SUFFIXES = {
  "": 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15,
  Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4, Pi: 1024 ** 5,
};

/** {number, suffix} of a quantity; null where the text is none. */
export function quantity(text) {
  const found = /^([-+]?(?:\d+\.?\d*|\.\d+))([A-Za-z%]*)$/.exec(text.trim());
  if (found === null) return null;
  const suffix = found[2].replace(/B$/, "");
  if (suffix === "%") return { number: Number(found[1]) / 100, suffix };
  const factor = SUFFIXES[suffix];
  return factor === undefined ? null : { number: Number(found[1]) * factor, suffix };
}
