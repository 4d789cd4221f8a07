/** View, time, selection and panel in the hash of the address: `#at=x,y,zoom&time=...&message=12&panel=ask`. */
import type { PanelName, Selection } from "./store.ts";

export const PANELS: readonly PanelName[] = ["messages", "ask", "do", "tracks", "network"];

export interface Permalink {
  /** The centre in the user's coordinates, and the zoom level. */
  view: { x: number; y: number; zoom: number } | null;
  time: number | null;
  selection: Selection | null;
  panel: PanelName | null;
}

export function formatPermalink({ view, time, selection, panel }: Permalink): string {
  const parameters = new URLSearchParams();
  if (view !== null) parameters.set("at", [view.x, view.y, view.zoom].map(shorten).join(","));
  if (time !== null) parameters.set("time", new Date(time).toISOString());
  if (selection !== null) {
    if ("sequence" in selection) parameters.set("message", String(selection.sequence));
    if ("key" in selection) parameters.set("subscription", selection.key);
    if (selection.kind === "track") {
      parameters.set("track", selection.attribute);
      parameters.set("object", selection.id);
    }
  }
  if (panel !== null && panel !== "messages") parameters.set("panel", panel);
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  return text === "" ? "" : `#${text}`;
}

export function parsePermalink(hash: string): Permalink {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  return {
    view: parseView(parameters.get("at")),
    time: parseTime(parameters.get("time")),
    selection: parseSelection(parameters),
    panel: PANELS.find((name) => name === parameters.get("panel")) ?? null,
  };
}

function shorten(value: number): string {
  return String(Number(value.toPrecision(9)));
}

function parseView(text: string | null): Permalink["view"] {
  const [x, y, zoom] = (text ?? "").split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (![x, y, zoom].every((value) => Number.isFinite(value))) return null;
  return { x: x ?? 0, y: y ?? 0, zoom: Math.min(22, Math.max(0, zoom ?? 0)) };
}

function parseTime(text: string | null): number | null {
  const time = text === null ? NaN : Date.parse(text);
  return Number.isNaN(time) ? null : time;
}

function parseSelection(parameters: URLSearchParams): Selection | null {
  const [message, key] = [parameters.get("message"), parameters.get("subscription")];
  const [attribute, id] = [parameters.get("track"), parameters.get("object")];
  const sequence = message !== null && /^\d{1,15}$/.test(message) ? Number(message) : null;
  if (sequence !== null && key !== null) return { kind: "match", key, sequence };
  if (sequence !== null) return { kind: "message", sequence };
  if (key !== null) return { kind: "subscription", key };
  if (attribute !== null && id !== null) return { kind: "track", attribute, id };
  return null;
}
