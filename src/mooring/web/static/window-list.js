/**
 * A listbox of thousands of rows of which only the visible ones are in the document.
 *
 * Arrows, Home, End, Page Up and Page Down move; Enter opens. Screen readers get the place of each row by aria-posinset.
 */

import { h } from "./dom.js";

const MARGIN = 6; // rows beyond both edges

export class WindowList {
  #items = [];
  #active = -1;
  #drawn = new Map();

  /**
   * `row(item)` makes the content of an option, `nameOf(item)` identifies it. Callbacks: onActive(item or null), onOpen(item).
   */
  constructor({ id, label, rowHeight, row, nameOf, onActive = () => {}, onOpen }) {
    Object.assign(this, { id, rowHeight, row, nameOf, onActive, onOpen });
    this.space = h("div", { class: "window-space", role: "presentation" });
    this.element = h("div", {
      id, class: "window-list", role: "listbox", tabindex: "0", "aria-label": label,
      on: {
        scroll: () => this.draw(),
        keydown: (event) => this.#key(event),
        focus: () => this.#active < 0 && this.#items.length && this.activate(0),
      },
    }, this.space);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
  }

  dispose() {
    this.observer.disconnect();
  }

  /** Other items; the active one stays active if it is still there. */
  set(items) {
    const kept = this.#active >= 0 ? this.nameOf(this.#items[this.#active]) : null;
    this.#items = items;
    this.#active = kept === null ? -1 : items.findIndex((item) => this.nameOf(item) === kept);
    this.space.style.setProperty("height", `${items.length * this.rowHeight}px`);
    this.#forget();
    this.draw();
  }

  /** Rows are made anew, as when what they show has changed. */
  refresh() {
    this.#forget();
    this.draw();
  }

  #forget() {
    for (const element of this.#drawn.values()) element.remove();
    this.#drawn.clear();
  }

  get active() {
    return this.#items[this.#active] ?? null;
  }

  activate(place, isScrolled = true) {
    this.#active = place;
    if (isScrolled && place >= 0) this.#reveal(place);
    this.draw();
    this.onActive(this.active);
  }

  activateNamed(name) {
    this.activate(this.#items.findIndex((item) => this.nameOf(item) === name));
  }

  #reveal(place) {
    const top = place * this.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.element.scrollTop = top + this.rowHeight - clientHeight;
  }

  draw() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / this.rowHeight) - MARGIN);
    const last = Math.min(this.#items.length, Math.ceil((scrollTop + clientHeight) / this.rowHeight) + MARGIN);
    for (const [place, element] of this.#drawn) {
      if (place >= first && place < last) continue;
      element.remove();
      this.#drawn.delete(place);
    }
    for (let place = first; place < last; place += 1) {
      if (!this.#drawn.has(place)) this.#drawn.set(place, this.#option(place));
    }
    for (const [place, element] of this.#drawn) {
      const isActive = place === this.#active;
      element.setAttribute("aria-selected", String(isActive));
      element.classList.toggle("active", isActive);
    }
    if (this.#drawn.has(this.#active)) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.#active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #option(place) {
    const item = this.#items[place];
    const option = h("div", {
      id: `${this.id}-${place}`, role: "option", class: "window-row", "aria-setsize": this.#items.length, "aria-posinset": place + 1,
      style: { top: `${place * this.rowHeight}px`, height: `${this.rowHeight}px` },
      on: {
        click: () => {
          this.activate(place, false);
          this.onOpen(item);
        },
        pointerenter: () => this.onActive(item),
        pointerleave: () => this.onActive(this.active),
      },
    }, this.row(item));
    // In order, so that a screen reader that walks the document finds rows as they are shown.
    const after = [...this.#drawn.keys()].filter((each) => each > place);
    if (after.length) this.space.insertBefore(option, this.#drawn.get(Math.min(...after)));
    else this.space.append(option);
    return option;
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const last = this.#items.length - 1;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.active !== null) {
      event.preventDefault();
      this.onOpen(this.active);
    } else if (event.key in moves && last >= 0) {
      event.preventDefault();
      this.activate(Math.min(last, Math.max(0, this.#active + moves[event.key])));
    }
  }
}
