/** Server-Sent Events from a body that is read in parts, as EventSource would parse them. */

export interface ServerEvent {
  name: string;
  data: string;
  /** The last id that was sent, with this event or before it; "" if there was none. */
  id: string;
}

/** Collects lines from parts of text and returns whole events. */
export class EventParser {
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id = "";
  /** Milliseconds after which the server wants to be asked again; null if it did not say. */
  retry: number | null = null;

  feed(part: string): ServerEvent[] {
    const text = this.#rest + part;
    // A carriage return at the end may be the first half of a line end: wait for the other half.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + text.slice(end);
    return lines.flatMap((line) => this.#take(line));
  }

  #take(line: string): ServerEvent[] {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    if (colon === 0) return []; // a comment that keeps the connection open
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
    return [];
  }

  #finish(): ServerEvent[] {
    const event = { name: this.#name === "" ? "message" : this.#name, data: this.#data.join("\n"), id: this.#id };
    const isEmpty = this.#data.length === 0;
    this.#name = "";
    this.#data = [];
    return isEmpty ? [] : [event];
  }
}
