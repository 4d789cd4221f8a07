import { afterEach, describe, expect, it, vi } from "vitest";
import { FLASH_MILLISECONDS } from "../src/app/flashes.ts";
import { selectionsOf } from "../src/app/running.ts";
import { Scene } from "../src/app/scene.ts";
import { createStore, KEPT_MESSAGES } from "../src/app/store.ts";
import type { Feature, FeatureState, LayerName, MapView } from "../src/map/view.ts";
import { message, SETTINGS, subscription } from "./support.ts";

/** A map that remembers what it was told. */
class RecordingMap implements Pick<MapView, "setFeatures" | "update" | "setState"> {
  readonly layers = new Map<LayerName, Map<string, Feature>>();
  readonly states = new Map<string, FeatureState>();

  setFeatures(layer: LayerName, features: Feature[]): void {
    this.layers.set(layer, new Map(features.map((feature) => [feature.id, feature])));
  }

  update(layer: LayerName, changed: Feature[], removed: string[]): void {
    const found = this.layers.get(layer) ?? new Map<string, Feature>();
    for (const id of removed) found.delete(id);
    for (const feature of changed) found.set(feature.id, feature);
    this.layers.set(layer, found);
  }

  setState(layer: LayerName, id: string, state: FeatureState): void {
    const name = `${layer} ${id}`;
    this.states.set(name, { ...this.states.get(name), ...state });
  }

  ids(layer: LayerName): string[] {
    return [...(this.layers.get(layer)?.keys() ?? [])];
  }
}

function openScene() {
  const [map, store] = [new RecordingMap(), createStore()];
  return { map, store, scene: new Scene(map as unknown as MapView, store, SETTINGS) };
}

afterEach(() => {
  vi.useRealTimers();
});

const timeOf = (sequence: number) => Date.parse(message(sequence).at);

describe("Scene", () => {
  it("draws subscriptions by what they are, and none without a shape", () => {
    const { map, store, scene } = openScene();
    const all = [
      subscription("a"),
      subscription("b", { paused: true }),
      subscription("c", { track: "vehicle" }),
      subscription("d", { shapes: [] }),
    ];
    store.subscriptions.value = new Map(all.map((one) => [one.key, one]));
    scene.changeSubscriptions(all, []);
    expect([...(map.layers.get("subscriptions")?.values() ?? [])].map((one) => [one.id, one.kind])).toEqual([
      ["a", "subscription"],
      ["b", "paused"],
      ["c", "tracked"],
    ]);
    scene.changeSubscriptions([subscription("a", { shapes: [] })], ["b"]);
    expect(map.ids("subscriptions")).toEqual(["c"]);
  });

  it("shows messages of the last minute, and takes them away afterwards", () => {
    const { map, scene } = openScene();
    scene.addMessages([message(1), message(50), message(61)], timeOf(65));
    expect(map.ids("messages")).toEqual(["50", "61"]);
    scene.expire(timeOf(115));
    expect(map.ids("messages")).toEqual(["61"]);
  });

  it("keeps a bounded number of messages on the map", () => {
    const { map, scene } = openScene();
    for (let first = 0; first < KEPT_MESSAGES + 500; first += 100) {
      scene.addMessages(Array.from({ length: 100 }, (_, index) => message(first + index, { at: message(1).at })), timeOf(2));
    }
    expect(map.ids("messages")).toHaveLength(KEPT_MESSAGES);
    expect(map.ids("messages").at(-1)).toBe(String(KEPT_MESSAGES + 499));
  });

  it("shows a tracked object once, where it is, with its trail", () => {
    const { map, scene } = openScene();
    const fixes = [1, 2, 3].map((sequence) => message(sequence, { attributes: { vehicle: "bus 1" } }));
    scene.addMessages(fixes, timeOf(3));
    expect(map.ids("messages")).toEqual([]);
    expect(map.ids("tracks")).toEqual(["vehicle bus 1 trail", "vehicle bus 1"]);
    expect(map.layers.get("tracks")?.get("vehicle bus 1")?.geometry).toEqual({ type: "Point", coordinates: [3, 1] });
    expect(scene.trackOf("vehicle bus 1 trail")).toEqual({ attribute: "vehicle", id: "bus 1", sequence: 3 });
    scene.expire(timeOf(500));
    expect(map.ids("tracks")).toEqual([]);
  });

  it("lights up what a message matched for a moment, beside the subscriptions themselves", () => {
    vi.useFakeTimers();
    const { map, store, scene } = openScene();
    store.subscriptions.value = new Map(["a", "b", "c"].map((key) => [key, subscription(key)]));
    scene.addMessages([message(1, { matched: ["a", "b"], matches: 2 })], timeOf(1));
    expect(map.ids("flashes")).toEqual(["a", "b"]);
    expect(map.layers.get("messages")?.get("1")?.kind).toBe("match");
    vi.advanceTimersByTime(FLASH_MILLISECONDS / 2);
    scene.addMessages([message(2, { matched: ["b", "c"], matches: 2 })], timeOf(2));
    vi.advanceTimersByTime(FLASH_MILLISECONDS / 2);
    expect(map.ids("flashes")).toEqual(["b", "c"]);
    vi.advanceTimersByTime(FLASH_MILLISECONDS / 2);
    expect(map.ids("flashes")).toEqual([]);
    expect(map.states.size).toBe(0); // a state would send the vertices of all subscriptions to the graphics card again
  });

  it("lights up subscriptions that the server's tiles show by their state", () => {
    vi.useFakeTimers();
    const [map, store] = [new RecordingMap(), createStore()];
    const scene = new Scene(map as unknown as MapView, store, { ...SETTINGS, subscriptions: SETTINGS.tiles_from + 1 });
    scene.addMessages([message(1, { matched: ["a"], matches: 1 })], timeOf(1));
    expect(map.states.get("subscriptions a")).toEqual({ flashing: true });
    vi.advanceTimersByTime(FLASH_MILLISECONDS);
    expect(map.states.get("subscriptions a")).toEqual({ flashing: false });
  });

  it("marks the selection and clears the one before", () => {
    const { map, store, scene } = openScene();
    store.messages.value = [message(1, { matched: ["a"], matches: 1 })];
    scene.select({ kind: "message", sequence: 1 });
    expect(map.states.get("messages 1")).toEqual({ selected: true });
    expect(map.states.get("subscriptions a")).toEqual({ hit: true });
    scene.select({ kind: "subscription", key: "a" });
    expect(map.states.get("messages 1")?.selected).toBe(false);
    expect(map.states.get("subscriptions a")).toEqual({ selected: true, hit: false });
  });
});

describe("selectionsOf", () => {
  const scene = { trackOf: (id: string) => (id === "vehicle 1" ? { attribute: "vehicle", id: "1", sequence: 9 } : null) };
  const hits = [
    { layer: "draft" as const, id: "x" },
    { layer: "messages" as const, id: "5" },
    { layer: "tracks" as const, id: "vehicle 1" },
    { layer: "subscriptions" as const, id: "a" },
  ];

  it("offers what lies under the pointer, topmost first", () => {
    expect(selectionsOf(hits, null, scene)).toEqual([
      { kind: "message", sequence: 5 },
      { kind: "track", attribute: "vehicle", id: "1" },
      { kind: "subscription", key: "a" },
    ]);
  });

  it("asks about a subscription together with the message that is selected", () => {
    expect(selectionsOf(hits.slice(3), { kind: "message", sequence: 5 }, scene)).toEqual([
      { kind: "match", key: "a", sequence: 5 },
    ]);
  });
});
