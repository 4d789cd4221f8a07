/**
 * The stream of what happens on the server. fetch reads it, since EventSource cannot send an API key in a header. A
 * stream that breaks is opened again where it ended, after growing pauses.
 */
import { type Api, ApiError, errorOf } from "../api/client.ts";
import type { MapEvents } from "../api/types.ts";
import { EventParser, type ServerEvent } from "./sse.ts";

export type LiveEvent = { [Name in keyof MapEvents]: { name: Name; data: MapEvents[Name] } }[keyof MapEvents];

export interface LiveHandlers {
  event(event: LiveEvent): void;
  /** "ended": the server refuses this key, and no further attempt is made. */
  state(state: "connecting" | "live" | "retrying" | "ended", reason: string | null): void;
}

export interface LiveOptions {
  /** Milliseconds until the first further attempt, and the most that a pause grows to. */
  firstPause?: number;
  longestPause?: number;
  /** A stream on which nothing came for this long is taken for dead: the server sends comments more often. */
  silence?: number;
  /** Simplification tolerance of geometries, in the user's units. */
  simplify?: number;
}

const NAMES: ReadonlySet<string> = new Set<keyof MapEvents>(["hello", "message", "subscription", "lost", "end"]);
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/** Follow the stream until the returned function is called. */
export function followLive(api: Api, handlers: LiveHandlers, options: LiveOptions = {}): () => void {
  const { firstPause = 500, longestPause = 15_000 } = options;
  const stopping = new AbortController();
  const isStopped = () => stopping.signal.aborted;
  const follow = async () => {
    let [pause, last] = [firstPause, ""];
    while (!isStopped()) {
      handlers.state(last === "" ? "connecting" : "retrying", null);
      try {
        const hasEnded = await readStream(api, handlers, options, last, stopping.signal, (id) => {
          [pause, last] = [firstPause, id];
        });
        if (hasEnded) return;
      } catch (error) {
        if (isStopped()) return;
        if (error instanceof ApiError && REFUSALS.has(error.status)) {
          handlers.state("ended", error.message);
          return;
        }
      }
      handlers.state("retrying", null);
      await sleep(pause * (0.75 + Math.random() / 2), stopping.signal);
      pause = Math.min(longestPause, pause * 2);
    }
  };
  void follow();
  return () => {
    stopping.abort();
  };
}

/** Read one stream until it breaks; true if the server ended it for good. */
async function readStream(
  api: Api,
  handlers: LiveHandlers,
  { silence = 45_000, simplify }: LiveOptions,
  last: string,
  stop: AbortSignal,
  received: (id: string) => void,
): Promise<boolean> {
  const silent = new AbortController();
  let timer = setTimeout(() => { silent.abort(); }, silence);
  try {
    const query = simplify === undefined ? "" : `?simplify=${simplify}`;
    const answer = await fetch(`${api.base}map/events${query}`, {
      headers: { ...api.headers(), Accept: "text/event-stream", ...(last === "" ? {} : { "Last-Event-ID": last }) },
      cache: "no-store",
      signal: AbortSignal.any([stop, silent.signal]),
    });
    if (!answer.ok || answer.body === null) throw await errorOf(answer);
    handlers.state("live", null);
    const parser = new EventParser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => { silent.abort(); }, silence);
      for (const event of parser.feed(value)) {
        received(event.id);
        const read = readEvent(event);
        if (read !== null) handlers.event(read);
        if (read?.name === "end") {
          handlers.state("ended", read.data.reason);
          return true;
        }
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** An event of the map; null if this page does not know it. */
function readEvent({ name, data }: ServerEvent): LiveEvent | null {
  return NAMES.has(name) ? ({ name, data: JSON.parse(data) as unknown } as LiveEvent) : null;
}

function sleep(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    stop.addEventListener("abort", finish, { once: true });
  });
}
