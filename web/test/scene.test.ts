import { describe, expect, it } from "vitest";
import { selectionsOf } from "../src/app/running.ts";
import { Scene } from "../src/app/scene.ts";
import { createStore } from "../src/app/store.ts";
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
    for (let first = 0; first < 2000; first += 100) {
      scene.addMessages(Array.from({ length: 100 }, (_, index) => message(first + index, { at: message(1).at })), timeOf(2));
    }
    expect(map.ids("messages")).toHaveLength(300);
    expect(map.ids("messages").at(-1)).toBe("1999");
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

  it("lights up what a message matched", () => {
    const { map, scene } = openScene();
    scene.addMessages([message(1, { matched: ["a", "b"], matches: 2 })], timeOf(1));
    expect(map.states.get("subscriptions a")).toEqual({ hit: true });
    expect(map.layers.get("messages")?.get("1")?.kind).toBe("match");
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
