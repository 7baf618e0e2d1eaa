/** Views as URL fragments: what an address shows, and the address of what is shown. Pure. */

/** "#/pods/shop/web-0?x=y" → {parts: ["pods", "shop", "web-0"], params: {x: "y"}}. */
export function parsed(fragment) {
  const text = fragment.replace(/^#/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const params = Object.fromEntries(new URLSearchParams(at < 0 ? "" : text.slice(at + 1)));
  return { parts: parts.length ? parts : ["map"], params };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The fragment of parts and params; empty params are left out, their order is that of the keys. */
export function address(parts, params = {}) {
  const path = parts.map(encodeURIComponent).join("/");
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = given.map(([key, value]) => `${encodeURIComponent(key)}=${readable(value)}`).join("&");
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Colons, slashes and commas need no escape behind the "?", and addresses stay legible. */
function readable(value) {
  return encodeURIComponent(value).replace(/%(3A|2F|2C|40)/g, decodeURIComponent);
}

/** The token of the printed link "#token=…", and where the link leads; null where there is none. */
export function tokenIn(fragment) {
  const found = /^#token=([^&]+)(?:&to=(.*))?$/.exec(fragment);
  if (found === null) return null;
  return { token: decoded(found[1]), to: found[2] ? `#${decoded(found[2])}` : "#/map" };
}

export function podAddress(namespace, name, params) {
  return address(["pods", namespace, name], params);
}

/** "shop/web-0" → ["shop", "web-0"]; a name alone is in "default". */
export function podParts(key) {
  const at = key.indexOf("/");
  return at < 0 ? ["default", key] : [key.slice(0, at), key.slice(at + 1)];
}

/** State of a view in an address: JSON as base64url, which needs no escapes. */
export function packed(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** What `packed` made; null where it is damaged. */
export function unpacked(text) {
  if (!text) return null;
  try {
    const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    const state = JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (each) => each.charCodeAt(0))));
    return typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}
