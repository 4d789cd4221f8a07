/** The state of the page as signals. Collections are replaced in place and announced by a version number. */
import { type Signal, signal } from "@preact/signals";
import type { MapMessage, MapSubscription, MapTransition } from "../api/types.ts";
import { LAYERS, type LayerName } from "../map/view.ts";

export type Selection =
  | { kind: "message"; sequence: number }
  | { kind: "subscription"; key: string }
  | { kind: "match"; key: string; sequence: number }
  | { kind: "track"; attribute: string; id: string };

/** What a click on the map does: select, or what a panel that draws or picks makes of it. */
export type MapMode = "select" | "draw" | "pick";

export type PanelName = "messages" | "ask" | "do" | "tracks" | "network";

/** How many of the latest messages and transitions the page keeps. */
export const KEPT_MESSAGES = 2000;
export const KEPT_TRANSITIONS = 500;

export interface Store {
  /** By key. A new Map after every change, at most one per animation frame. */
  subscriptions: Signal<ReadonlyMap<string, MapSubscription>>;
  /** Oldest first, at most KEPT_MESSAGES; those of the time line's window while `time` is not null. */
  messages: Signal<readonly MapMessage[]>;
  /** Latest transitions of tracked objects, oldest first, at most KEPT_TRANSITIONS. */
  transitions: Signal<readonly MapTransition[]>;
  selection: Signal<Selection | null>;
  /** The selection that an address named together with a view: the map stays at that view. */
  linked: Signal<Selection | null>;
  /** The moment shown, as milliseconds since 1970; null follows the present. */
  time: Signal<number | null>;
  playing: Signal<boolean>;
  /** Seconds of the log per second of playing. */
  speed: Signal<number>;
  visibleLayers: Signal<ReadonlySet<LayerName>>;
  panel: Signal<PanelName>;
  /** Clicks select nothing unless this is "select". */
  mapMode: Signal<MapMode>;
  connection: Signal<"connecting" | "live" | "retrying" | "ended">;
}

export function createStore(): Store {
  return {
    subscriptions: signal(new Map()),
    messages: signal([]),
    transitions: signal([]),
    selection: signal<Selection | null>(null),
    linked: signal<Selection | null>(null),
    time: signal<number | null>(null),
    playing: signal(false),
    speed: signal(60),
    visibleLayers: signal(new Set(LAYERS)),
    panel: signal<PanelName>("messages"),
    mapMode: signal<MapMode>("select"),
    connection: signal<"connecting" | "live" | "retrying" | "ended">("connecting"),
  };
}
