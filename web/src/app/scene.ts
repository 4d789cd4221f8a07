/** From the store onto the map: subscriptions, messages of the last minute, tracked objects, hits and the selection. */
import type { MapMessage, MapSettings, MapSubscription } from "../api/types.ts";
import { boundsOf } from "../map/plane.ts";
import type { Feature, LayerName, MapView } from "../map/view.ts";
import { Flashes } from "./flashes.ts";
import { KEPT_MESSAGES, type Selection, type Store } from "./store.ts";

const SHOWN_OBJECTS = 2000;
const TRAIL = 12; // places of a tracked object
const LABELLED_SUBSCRIPTIONS = 300; // with more of them names would cover the map
/** Messages are shown this many milliseconds after their time. */
export const WINDOW = 60_000;

export function subscriptionFeature(subscription: MapSubscription, isLabelled: boolean): Feature | null {
  const geometries = subscription.shapes.map((shape) => shape.geometry);
  const geometry = merge(geometries);
  if (geometry === null) return null;
  const kind = subscription.paused ? "paused" : subscription.track === null ? "subscription" : "tracked";
  return { id: subscription.key, geometry, kind, properties: isLabelled ? { label: subscription.key } : {} };
}

export function messageFeature(message: MapMessage): Feature | null {
  const geometry = merge(message.shapes.map((shape) => shape.geometry));
  if (geometry === null) return null;
  return { id: String(message.sequence), geometry, kind: message.matches > 0 ? "match" : "message" };
}

function merge(geometries: GeoJSON.Geometry[]): GeoJSON.Geometry | null {
  const [first, ...others] = geometries;
  if (first === undefined) return null;
  return others.length === 0 ? first : { type: "GeometryCollection", geometries };
}

interface TrackedObject {
  geometry: GeoJSON.Geometry;
  /** Where it was: centres of its shapes, latest last. */
  places: [number, number][];
  at: number;
  sequence: number;
}

export class Scene {
  readonly #map: MapView;
  readonly #store: Store;
  readonly #settings: MapSettings;
  #shown = new Map<number, number>(); // sequence to time, by rising sequence
  readonly #flashes: Flashes;
  #objects = new Map<string, TrackedObject>();
  #isLabelled = false;
  #selected: { layer: LayerName; id: string }[] = [];

  constructor(map: MapView, store: Store, settings: MapSettings) {
    [this.#map, this.#store, this.#settings] = [map, store, settings];
    this.#flashes = new Flashes(map, store, settings, (one) => subscriptionFeature(one, false));
  }

  changeSubscriptions(changed: MapSubscription[], removed: string[]): void {
    const all = this.#store.subscriptions.value;
    const isLabelled = all.size <= LABELLED_SUBSCRIPTIONS;
    if (isLabelled !== this.#isLabelled) {
      this.#isLabelled = isLabelled;
      this.#map.setFeatures("subscriptions", features([...all.values()], (one) => subscriptionFeature(one, isLabelled)));
      return;
    }
    const made = features(changed, (one) => subscriptionFeature(one, isLabelled));
    const drawn = new Set(made.map((feature) => feature.id));
    const gone = changed.filter((one) => !drawn.has(one.key)).map((one) => one.key);
    this.#map.update("subscriptions", made, [...removed, ...gone]);
  }

  /** Show messages that came after those shown; `now` is the moment shown, `window` how long messages stay. */
  addMessages(messages: readonly MapMessage[], now: number, window = WINDOW): void {
    const added: Feature[] = [];
    for (const message of messages.slice(-KEPT_MESSAGES)) {
      const at = Date.parse(message.at);
      if (at < now - window || this.#shown.has(message.sequence) || this.#isTracked(message)) continue;
      const feature = messageFeature(message);
      if (feature !== null) {
        added.push(feature);
        this.#shown.set(message.sequence, at);
      }
    }
    this.#moveObjects(messages, now, window);
    this.#flashes.add(new Set(messages.flatMap(keysOf)));
    this.#map.update("messages", added, this.#expire(now - window));
  }

  /** Show these messages and no others, as after a jump in time. */
  replaceMessages(messages: readonly MapMessage[], now: number, window = WINDOW): void {
    this.#shown.clear();
    this.#objects.clear();
    this.#map.setFeatures("messages", []);
    this.#map.setFeatures("tracks", []);
    this.addMessages(messages.filter((message) => Date.parse(message.at) >= now - window), now, window);
  }

  /** Take messages off the map whose time has passed. */
  expire(now: number, window = WINDOW): void {
    const removed = this.#expire(now - window);
    if (removed.length > 0) this.#map.update("messages", [], removed);
    this.#moveObjects([], now, window);
  }

  select(selection: Selection | null): void {
    for (const { layer, id } of this.#selected) this.#map.setState(layer, id, { selected: false, hit: false });
    this.#selected = [];
    const mark = (layer: LayerName, id: string, state: { selected?: boolean; hit?: boolean }) => {
      this.#selected.push({ layer, id });
      this.#map.setState(layer, id, state);
    };
    if (selection === null) return;
    if ("key" in selection) mark("subscriptions", selection.key, { selected: true });
    if ("sequence" in selection) mark("messages", String(selection.sequence), { selected: true });
    if (selection.kind === "track") mark("tracks", objectId(selection.attribute, selection.id), { selected: true });
    if (selection.kind !== "message") return;
    const message = this.#store.messages.value.find((one) => one.sequence === selection.sequence);
    for (const key of message?.matched ?? []) mark("subscriptions", key, { hit: true });
  }

  /** The tracked object that a feature of the layer "tracks" shows; null for a feature of another kind. */
  trackOf(id: string): { attribute: string; id: string; sequence: number } | null {
    const found = this.#objects.get(id.replace(/ trail$/, ""));
    const attribute = this.#settings.tracks.find((name) => id.startsWith(`${name} `));
    if (found === undefined || attribute === undefined) return null;
    return { attribute, id: id.slice(attribute.length + 1).replace(/ trail$/, ""), sequence: found.sequence };
  }

  /** A tracked object is shown where it is, and not as many messages. */
  #isTracked(message: MapMessage): boolean {
    return message.shapes.length > 0 && this.#settings.tracks.some((name) => name in message.attributes);
  }

  #expire(before: number): string[] {
    const removed: string[] = [];
    for (const [sequence, at] of this.#shown) {
      if (at >= before && this.#shown.size - removed.length <= KEPT_MESSAGES) break;
      removed.push(String(sequence));
    }
    for (const sequence of removed) this.#shown.delete(Number(sequence));
    return removed;
  }

  #moveObjects(messages: readonly MapMessage[], now: number, window: number): void {
    const moved = new Set<string>();
    for (const message of messages) {
      const geometry = merge(message.shapes.map((shape) => shape.geometry));
      const centre = geometry === null ? null : centreOf(geometry);
      if (geometry === null || centre === null) continue;
      for (const name of this.#settings.tracks) {
        const value = message.attributes[name];
        if (typeof value !== "string" && typeof value !== "number") continue;
        const id = objectId(name, String(value));
        const places = [...(this.#objects.get(id)?.places ?? []), centre].slice(-TRAIL);
        this.#objects.delete(id); // so that the map stays in the order of the last fix
        this.#objects.set(id, { geometry, places, at: Date.parse(message.at), sequence: message.sequence });
        moved.add(id);
      }
    }
    const gone: string[] = [];
    for (const [id, { at }] of this.#objects) {
      if (at >= now - 2 * window && this.#objects.size <= SHOWN_OBJECTS) break;
      this.#objects.delete(id);
      gone.push(id, `${id} trail`);
      moved.delete(id);
    }
    if (moved.size + gone.length === 0) return;
    this.#map.update("tracks", [...moved].flatMap((id) => this.#objectFeatures(id)), gone);
  }

  #objectFeatures(id: string): Feature[] {
    const found = this.#objects.get(id);
    if (found === undefined) return [];
    const label = id.slice(id.indexOf(" ") + 1);
    const object: Feature = { id, kind: "object", geometry: found.geometry, properties: { label } };
    if (found.places.length < 2) return [object];
    const trail: Feature = { id: `${id} trail`, kind: "trail", geometry: { type: "LineString", coordinates: found.places } };
    return [trail, object];
  }
}

/** Subscriptions that a message concerns. */
function keysOf({ matched, transitions }: MapMessage): string[] {
  return [...matched, ...transitions.map(({ key }) => key)];
}

export function objectId(attribute: string, id: string): string {
  return `${attribute} ${id}`;
}

function centreOf(geometry: GeoJSON.Geometry): [number, number] | null {
  const bounds = boundsOf([geometry]);
  return bounds === null ? null : [(bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2];
}

function features<T>(items: T[], make: (item: T) => Feature | null): Feature[] {
  return items.map(make).filter((feature) => feature !== null);
}
