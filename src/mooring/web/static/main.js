/** The page: takes the token from the link, shows the frame, and the view of the address. */

import { forgetToken, keepToken, onUnauthorized, token } from "./api.js";
import { announce, h, show } from "./dom.js";
import { clock, duration } from "./format.js";
import { makeFrame } from "./frame.js";
import { address, parsed, tokenIn } from "./routes.js";
import { ClusterStore } from "./store.js";
import * as theme from "./theme.js";
import { empty, failure, loading } from "./widgets.js";

/** A view's module is loaded when it is first shown. */
const VIEWS = {
  __proto__: null, // names come from addresses
  map: () => import("./map-view.js"),
  queue: () => import("./queue-view.js"),
  live: () => import("./live-view.js"),
  pods: () => import("./pod-view.js"),
  nodes: () => import("./node-view.js"),
  "what-if": () => import("./what-if-view.js"),
  compare: () => import("./compare-view.js"),
  time: () => import("./time-view.js"),
};

/** A pod has a namespace and a name, a node a name; without them, what lists them is shown. */
const LEAST_PARTS = { __proto__: null, pods: 3, nodes: 2 };

const store = new ClusterStore();
const main = document.getElementById("main");
let current = null;
let frame = null;

theme.apply();
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
start();

function start() {
  const link = tokenIn(location.hash);
  if (link) {
    keepToken(link.token);
    history.replaceState(null, "", link.to);
  }
  frame = makeFrame(document.getElementById("top"), store);
  onUnauthorized.addEventListener("unauthorized", ({ detail }) => askForToken(detail));
  addEventListener("hashchange", () => {
    // A link with a token, pasted into a tab that is open.
    const again = tokenIn(location.hash);
    if (!again) return route();
    keepToken(again.token);
    history.replaceState(null, "", again.to);
    return begin();
  });
  store.addEventListener("status", showConnection);
  store.addEventListener("configuration", decideAgain);
  setInterval(showConnection, 1000);
  // Without a token, too: the response names which one is needed.
  begin();
}

function begin() {
  show(main, loading("Reading the cluster"));
  current?.dispose?.();
  current = null;
  store.start();
  const shown = () => {
    if (store.cluster === null && store.status !== "lost") return;
    store.removeEventListener("nodes", shown);
    store.removeEventListener("status", shown);
    route();
  };
  store.addEventListener("nodes", shown);
  store.addEventListener("status", shown);
}

async function route() {
  if (store.cluster === null) {
    if (store.error) show(main, failure(store.error, () => store.retryNow()));
    store.addEventListener("nodes", route, { once: true });
    return;
  }
  const { parts, params } = parsed(location.hash);
  if (parts.length < (LEAST_PARTS[parts[0]] ?? 1)) {
    location.replace(parts[0] === "nodes" ? "#/map" : "#/queue");
    return;
  }
  const key = JSON.stringify(parts);
  frame.select(parts[0]);
  if (current?.key === key && current.update) {
    current.update(params);
    return;
  }
  const isFirst = current === null;
  current?.dispose?.();
  current = { key };
  const opened = current;
  const load = VIEWS[parts[0]];
  if (!load) {
    setTitle("No such view");
    show(main, h("h1", { class: "hidden" }, "No such view"), empty("There is no such view", h("p", {}, h("a", { href: "#/map" }, "Open the map"))));
    return;
  }
  const { view } = await load();
  if (current !== opened) return;
  const context = { store, parts, params, navigate: (changed) => navigate(parts, changed), title: setTitle };
  show(main);
  window.scrollTo(0, 0);
  Object.assign(opened, view(main, context));
  if (!isFirst) main.focus({ preventScroll: true });
}

/** Another configuration is in force: what is shown was decided by the earlier one. The address has the view's state. */
async function decideAgain() {
  announce("The configuration has changed; what is shown was decided again.");
  const focused = document.activeElement?.id;
  current?.dispose?.();
  current = { key: "" };
  await route();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/** Changes the params of the shown view; its address follows, without another entry in the history. */
function navigate(parts, params) {
  history.replaceState(null, "", address(parts, params));
}

function setTitle(text) {
  document.title = text ? `${text} · Mooring` : "Mooring";
}

function showConnection() {
  const banner = document.getElementById("banner");
  frame.showStatus();
  const isLost = store.status === "lost" && store.cluster !== null;
  document.documentElement.dataset.connection = store.status;
  if (!isLost) {
    banner.hidden = true;
    return;
  }
  const seconds = Math.max(0, Math.round((store.retryAt - Date.now()) / 1000));
  const text = `${store.error?.message ?? "The connection was lost."} Shown is the cluster as of ${clock(store.lastContact)}.`;
  if (banner.hidden || banner.dataset.text !== text) {
    banner.dataset.text = text;
    show(banner, h("strong", {}, "Connection lost. "), h("span", {}, text), " ",
      h("span", { id: "retry-in", "aria-hidden": "true" }), " ",
      h("button", { type: "button", on: { click: () => store.retryNow() } }, "Try now"));
    banner.hidden = false;
  }
  document.getElementById("retry-in").textContent = seconds ? `Next try in ${duration(seconds)}.` : "Trying…";
}

/** The link of a page on the user's own machine, or where it is shared their own token of the cluster. */
const SIGN_IN = {
  __proto__: null, // names come from the server
  link: {
    title: "Open the page by its link",
    text: "mooring web and mooring up print a link that carries a token; this address has none.",
    refused: "The server does not accept the token of this tab. It changes with each start of mooring web.",
    label: "Or paste the link or its token",
    button: "Open",
  },
  token: {
    title: "Sign in",
    text: "This page is shared by users of the cluster. Sign in with your own token of the cluster; you see what you may list there.",
    refused: "The cluster does not accept this token; it may have expired.",
    label: "Token of the cluster, as kubectl create token NAME prints it",
    button: "Sign in",
  },
};

function askForToken(error) {
  store.stop();
  current?.dispose?.();
  current = null;
  const words = SIGN_IN[error.field] ?? SIGN_IN.link;
  const text = token() ? words.refused : words.text;
  forgetToken();
  // Several requests are refused at once; what was typed since the first stays.
  if (main.firstElementChild?.id === "sign-in") return;
  const input = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  setTitle("Token needed");
  show(main, h("form", {
    class: "state token", id: "sign-in", on: {
      submit: (event) => {
        event.preventDefault();
        const pasted = input.value.trim();
        keepToken(tokenIn(pasted.slice(Math.max(0, pasted.indexOf("#"))))?.token ?? pasted);
        begin();
      },
    },
  },
  h("h1", {}, words.title),
  h("p", {}, text),
  h("label", { for: "token" }, words.label),
  h("div", { class: "row" }, input, h("button", { type: "submit", class: "primary" }, words.button))));
  input.focus();
}
