/**
 * Elements, made in one place. Children that are text become text nodes: names, labels and messages of a cluster can never
 * become markup. Styles are set by property, as a strict Content-Security-Policy allows, and links stay within the page.
 */

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: h("a", {class: "x", href: "#/map", on: {click}}, "text", child, [children]). */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "open", "readOnly", "indeterminate"]);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null) continue;
    if (name === "on") {
      for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    } else if (name === "style") {
      for (const [property, each] of Object.entries(value)) element.style.setProperty(property, each);
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else if (value === false) {
      if (name.startsWith("aria-")) element.setAttribute(name, "false");
    } else {
      setAttribute(element, name, value === true && !name.startsWith("aria-") ? "" : String(value));
    }
  }
  put(element, children);
  return element;
}

function setAttribute(element, name, value) {
  if (/^on/i.test(name) || name === "style") throw new Error(`attribute ${name} is not set from here`);
  if (name === "href" && !value.startsWith("#")) throw new Error("a link leaves the page");
  element.setAttribute(name, value);
}

/** Appends text, elements and lists of both; false, null and undefined are left out. */
export function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replaces what the element contains. */
export function show(element, ...children) {
  element.replaceChildren();
  return put(element, children);
}

let lastId = 0;

/** An id for aria-labelledby and its like, unique on the page. */
export function newId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Announces text to screen readers. */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (region && region.textContent !== text) region.textContent = text;
}

/** Runs after the last of several calls, `milliseconds` later; `cancel` forgets a waiting one. */
export function debounced(run, milliseconds) {
  let timer = 0;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...args), milliseconds);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

/** Runs once in the next frame, however often it is called before. */
export function oncePerFrame(run) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      run();
    });
  };
}

/** Runs at once, then at most once in `milliseconds`, also when calls never pause. */
export function atMostEvery(run, milliseconds) {
  let [timer, isWanted] = [0, false];
  const call = () => {
    isWanted = true;
    if (timer) return;
    const next = () => {
      timer = 0;
      if (!isWanted) return;
      isWanted = false;
      timer = setTimeout(next, milliseconds);
      run();
    };
    next();
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

/** Runs one at a time: calls meanwhile are one run after it, with what is wanted then. `run` never rejects. */
export function oneAtATime(run) {
  let [isRunning, isWanted] = [false, false];
  return async () => {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await run();
    }
    isRunning = false;
  };
}
