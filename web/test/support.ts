/** A server in the page: answers by path, and records what was asked. */
import { vi } from "vitest";
import type { MapMessage, MapSettings, MapSubscription } from "../src/api/types.ts";

export const SETTINGS: MapSettings = {
  title: "Test",
  tiles: null,
  plain: false,
  plane: null,
  bounds: [0, 0, 10, 10],
  read_only: false,
  demo: false,
  version: "0",
  needs_key: false,
  tenant: "default",
  scopes: ["admin", "publish", "subscribe"],
  shows: ["filters", "attributes", "subscribers"],
  subscriptions: 2,
  tiles_from: 20_000,
  tracks: ["vehicle"],
  oldest: 1,
  newest: 0,
  now: "2026-05-01T12:00:00Z",
};

export function message(sequence: number, more: Partial<MapMessage> = {}): MapMessage {
  return {
    sequence,
    at: new Date(Date.UTC(2026, 4, 1, 12, 0, 0) + sequence * 1000).toISOString(),
    id: null,
    own: false,
    shapes: [{ attribute: "where", geometry: { type: "Point", coordinates: [sequence, 1] } }],
    attributes: { n: sequence },
    matched: [],
    matches: 0,
    transitions: [],
    ...more,
  };
}

export function subscription(key: string, more: Partial<MapSubscription> = {}): MapSubscription {
  return {
    key,
    subscriber: "ann",
    filter: "n > 1",
    paused: false,
    on: "match",
    track: null,
    applies_from: 1,
    created: "2026-05-01T12:00:00Z",
    expires: null,
    shapes: [{ attribute: "where", relation: "S_WITHIN", negated: false, relations: ["inside"], geometry: { type: "Point", coordinates: [1, 1] } }],
    conditions: "n > 1",
    bounds: [1, 1, 1, 1],
    ...more,
  };
}

export interface Asked {
  url: URL;
  method: string;
  headers: Headers;
}

/** Replace fetch; `answer` gets what was asked. Returns the list of requests so far. */
export function serve(answer: (asked: Asked, signal: AbortSignal | undefined) => Response | Promise<Response>): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal("fetch", async (address: string, options: RequestInit = {}) => {
    const one = { url: new URL(address), method: options.method ?? "GET", headers: new Headers(options.headers) };
    asked.push(one);
    return answer(one, options.signal ?? undefined);
  });
  return asked;
}

export interface OpenBody {
  body: ReadableStream<Uint8Array>;
  push: (text: string) => void;
  end: () => void;
  /** Break it, as a connection breaks. */
  fail: () => void;
}

/** A body that `push` adds text to, until `end` or `fail` is called. */
export function openBody(): OpenBody {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
  });
  return {
    body,
    push: (text) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    fail: () => controller?.error(new TypeError("broken")),
  };
}

export function eventText(name: string, data: unknown, id?: number): string {
  return `event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}
