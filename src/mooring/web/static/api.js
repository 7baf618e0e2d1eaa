/** Requests to the API, with the token of the printed link. The token stays in this tab's session storage, and in no address. */

const BASE = "api/v1";
const KEY = "mooring-token";
const BUSY_TRIES = 6;
const BUSY_PAUSE = 1500;

export class ApiError extends Error {
  constructor(status, { code, message, field, near, problems } = {}) {
    super(message || `The server responded with status ${status}.`);
    this.status = status;
    this.code = code ?? "";
    this.field = field ?? "";
    this.near = near ?? [];
    this.problems = problems ?? [];
  }

  get isUnreachable() {
    return this.status === 0;
  }
}

export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function keepToken(text) {
  sessionStorage.setItem(KEY, text);
}

export function forgetToken() {
  sessionStorage.removeItem(KEY);
}

/** Called when the server refuses the token, with its error: its field names which token it takes. */
export const onUnauthorized = new EventTarget();

export async function get(path, params = {}, signal = undefined) {
  return (await request("GET", path + query(params), undefined, signal)).json();
}

export async function post(path, body, signal = undefined) {
  return (await request("POST", path, body, signal)).json();
}

/** POST of what the server computes for a few clients at a time: while it is busy, tried again. */
export async function postPatiently(path, body, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await post(path, body, signal);
    } catch (error) {
      if (error.status !== 429 || tries === BUSY_TRIES) throw error;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, BUSY_PAUSE);
    });
    signal?.throwIfAborted();
  }
}

export async function remove(path) {
  return (await request("DELETE", path)).json();
}

/** The response of the stream, whose body is read as it arrives. */
export function stream(signal) {
  return request("GET", "/stream", undefined, signal, "text/event-stream");
}

function query(params) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function request(method, path, body, signal, accept = "application/json") {
  const headers = { Accept: accept };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const options = { method, headers, signal, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(BASE + path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { message: "The server does not respond. Does mooring web still run?" });
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.status === 401) onUnauthorized.dispatchEvent(new CustomEvent("unauthorized", { detail: error }));
  throw error;
}

async function errorOf(response) {
  try {
    const { error } = await response.json();
    return new ApiError(response.status, typeof error === "string" ? { message: error } : error);
  } catch {
    return new ApiError(response.status);
  }
}

export const podPath = (namespace, name) => `/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
export const nodePath = (name) => `/nodes/${encodeURIComponent(name)}`;
