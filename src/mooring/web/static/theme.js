/** Light or dark: as the system prefers, or as chosen on this page. */

const KEY = "mooring-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const onTheme = new EventTarget();

/** auto, light or dark. */
export function chosen() {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

let isOnPaper = false;

/** Light while the page is printed. */
export function forPrint(isPrinting) {
  isOnPaper = isPrinting;
  apply();
}

/** light or dark, as it is shown. */
export function scheme() {
  if (isOnPaper) return "light";
  return chosen() === "auto" ? (system.matches ? "dark" : "light") : chosen();
}

export function choose(theme) {
  if (theme === "auto") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  apply();
}

export function apply() {
  document.documentElement.dataset.theme = scheme();
  onTheme.dispatchEvent(new Event("theme"));
}

system.addEventListener("change", apply);
