/** A page for tests of panels: a real store, a map that remembers what it was told, and an API of canned answers. */

import { vi, type Mock } from "vitest";
import type { Api } from "../../src/api/client.ts";
import type { MapMessage, MapSettings, MapSubscription } from "../../src/api/types.ts";
import type { AppContext } from "../../src/app/context.ts";
import { createStore } from "../../src/app/store.ts";
import { boxPolygon } from "../../src/do/filter/json.ts";
import type { Feature, Hit, LayerName, MapView } from "../../src/map/view.ts";

export const SETTINGS: MapSettings = {
  title: "Contrada",
  tiles: null,
  plain: true,
  plane: null,
  bounds: null,
  read_only: false,
  demo: false,
  version: "1",
  needs_key: false,
  tenant: "default",
  scopes: ["publish", "subscribe", "admin"],
  shows: ["filters", "attributes", "subscribers"],
  subscriptions: 0,
  tiles_from: 20_000,
  tracks: [],
  oldest: 1,
  newest: 0,
  now: "2024-05-01T12:00:00Z",
};

export function subscription(key: string, change: Partial<MapSubscription> = {}): MapSubscription {
  return {
    key,
    subscriber: "ann",
    filter: "severity >= 3",
    paused: false,
    on: "match",
    track: null,
    applies_from: 1,
    created: "2024-05-01T11:00:00Z",
    expires: null,
    shapes: [],
    conditions: "severity >= 3",
    bounds: null,
    ...change,
  };
}

export function message(sequence: number, change: Partial<MapMessage> = {}): MapMessage {
  return {
    sequence,
    at: "2024-05-01T12:00:00Z",
    id: null,
    own: false,
    shapes: [{ attribute: "geometry", geometry: boxPolygon(0, 0, 4, 4) }],
    attributes: { event: "Hail", severity: 3 },
    matched: [],
    matches: 0,
    transitions: [],
    ...change,
  };
}

/** What the map was told last, by layer. */
export class FakeMap {
  readonly layers = new Map<LayerName, Feature[]>();
  readonly container = document.createElement("div");
  readonly fitted: GeoJSON.Geometry[][] = [];
  private handlers: ((hits: Hit[], at: [number, number]) => void)[] = [];

  click(...hits: Hit[]): void {
    for (const handler of [...this.handlers]) handler(hits, [0, 0]);
  }

  kinds(layer: LayerName): string[] {
    return (this.layers.get(layer) ?? []).map((feature) => feature.kind);
  }

  view(): MapView {
    const view: Partial<MapView> = {
      setFeatures: (layer, features) => {
        this.layers.set(layer, features);
      },
      update: (layer, changed, removed) => {
        const gone = new Set([...removed, ...changed.map((feature) => feature.id)]);
        const kept = (this.layers.get(layer) ?? []).filter((feature) => !gone.has(feature.id));
        this.layers.set(layer, [...kept, ...changed]);
      },
      fit: (geometries) => {
        this.fitted.push(geometries);
      },
      onClick: (handler) => {
        this.handlers.push(handler);
        return () => {
          this.handlers = this.handlers.filter((other) => other !== handler);
        };
      },
      maplibre: { getSource: () => undefined, getContainer: () => this.container } as unknown as MapView["maplibre"],
      project: (xy) => xy,
      unproject: (xy) => xy,
      isDestroyed: false,
    };
    return view as MapView;
  }
}

type Answers = { [Method in keyof Api]?: Mock };

export interface TestPage {
  context: AppContext;
  map: FakeMap;
  announced: string[];
}

/** Return a page; routes that a test does not answer fail the test. */
export function page(answers: Answers = {}, settings: Partial<MapSettings> = {}): TestPage {
  const map = new FakeMap();
  const announced: string[] = [];
  const api = new Proxy(answers as Record<string, Mock>, {
    get: (known, name) =>
      known[String(name)] ??
      vi.fn(() => {
        throw new Error(`the test does not answer api.${String(name)}`);
      }),
  }) as unknown as Api;
  const context: AppContext = {
    api,
    map: map.view(),
    store: createStore(),
    settings: { ...SETTINGS, ...settings },
    announce: (text) => {
      announced.push(text);
    },
  };
  return { context, map, announced };
}
