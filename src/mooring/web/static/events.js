/** Server-sent events, parsed from the text of a response: EventSource cannot send the token in a header. Pure. */

export class EventParser {
  #rest = "";
  #type = "";
  #data = [];

  /** Takes the next text; returns the events that it completes, as {type, data}. */
  push(text) {
    const events = [];
    this.#rest += text;
    // A carriage return at the end may be the first half of a line end.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length) events.push({ type: this.#type || "message", data: this.#data.join("\n") });
        this.#type = "";
        this.#data = [];
      } else if (!line.startsWith(":")) {
        this.#field(line);
      }
    }
    return events;
  }

  #field(line) {
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "event") this.#type = value;
    else if (name === "data") this.#data.push(value);
  }
}
