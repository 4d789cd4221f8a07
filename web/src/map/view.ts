/** The map component: what it shows and how it is told. `createMapView` is in create.ts. */
import type { Map as MapLibre } from "maplibre-gl";
import type { Plane } from "../api/types.ts";

export type { Plane } from "../api/types.ts";

export const LAYERS = ["subscriptions", "flashes", "messages", "tracks", "answer", "relation", "draft", "brokers"] as const;
export type LayerName = (typeof LAYERS)[number];
export type Theme = "light" | "dark";

/**
 * A shape of a layer. `id` is unique within its layer. `kind` chooses its colour (see KINDS in style.ts). Properties
 * that the style knows: `label` (text beside the shape), `radius` (of a point, in pixels), `from` and `to` are free.
 */
export interface Feature {
  id: string;
  geometry: GeoJSON.Geometry;
  kind: string;
  properties?: Record<string, unknown>;
}

export interface FeatureState {
  selected?: boolean;
  hit?: boolean;
  flashing?: boolean;
  dimmed?: boolean;
  hover?: boolean;
}

export interface Hit {
  layer: LayerName;
  id: string;
}

/** Land, borders, places and glyphs of the base map. A report carries them; the served page fetches them. */
export interface BasemapSource {
  /** A FeatureCollection; `fine` is asked for only when the user zooms in. null: show none. */
  load(part: BasemapPart): Promise<GeoJSON.FeatureCollection | null>;
  /** Glyphs of the code points `range`..`range` + 255 as a protocol buffer; null if the font has none of them. */
  glyphs(range: number): Promise<ArrayBuffer | null>;
  attribution: string;
}
export type BasemapPart = "land" | "borders" | "land-fine" | "borders-fine" | "places";

export interface MapOptions {
  /** Coordinates are no degrees: a labelled grid takes the place of the base map. */
  plain: boolean;
  /** Where plain coordinates lie on the Mercator square; computed from `bounds` when absent. */
  plane?: Plane | null;
  /** What to show first: xmin, ymin, xmax, ymax in the user's coordinates. */
  bounds?: [number, number, number, number];
  /** The user's own raster tiles, drawn above the base map. */
  tiles?: { url: string; attribution: string };
  theme: Theme;
  basemap: BasemapSource;
  /** Address of MapLibre's worker script: a file for the served page, a blob for a report. */
  workerUrl: string;
  /** Vector tiles of subscriptions in place of GeoJSON: `url` with {z}, {x} and {y}, and headers of its requests. */
  subscriptionTiles?: { url: string; headers?: () => Record<string, string> };
  /** Accessible name of the map. */
  label?: string;
  /** Scroll the page with the wheel, and zoom with Ctrl and the wheel. */
  cooperative?: boolean;
}

export interface MapView {
  /** Replace the whole content of a layer. */
  setFeatures(layer: LayerName, features: Feature[]): void;
  /** Add or replace some features of a layer and remove others. */
  update(layer: LayerName, changed: Feature[], removed: string[]): void;
  setState(layer: LayerName, id: string, state: FeatureState): void;
  /** Remove the states of all features of a layer. */
  clearState(layer: LayerName): void;
  show(layer: LayerName, visible: boolean): void;
  /** Move so that all geometries (in the user's coordinates) are visible. */
  fit(geometries: GeoJSON.Geometry[], options?: { maxZoom?: number; animate?: boolean }): void;
  /** Keep this many pixels at each side free of what `fit` shows, as panels cover them. */
  setPadding(padding: { top?: number; right?: number; bottom?: number; left?: number }): void;
  setTheme(theme: Theme): void;
  /** Called with the topmost features first; `at` is in the user's coordinates. Returns a function that unsubscribes. */
  onClick(handler: (hits: Hit[], at: [number, number]) => void): () => void;
  /** Called with the feature under the pointer, or null, and the place in the user's coordinates. */
  onHover(handler: (hit: Hit | null, at: [number, number] | null) => void): () => void;
  /** From the user's coordinates to longitude and latitude of the canvas, and back; the identity unless `plain`. */
  project: (xy: [number, number]) => [number, number];
  unproject: (lngLat: [number, number]) => [number, number];
  readonly maplibre: MapLibre;
  /** The map is gone: calls do nothing any more, and `maplibre` must not be used. */
  readonly isDestroyed: boolean;
  destroy(): void;
}

/** The element of the map has the view, for tests and for the curious. */
export interface MapHost extends HTMLDivElement {
  contradaView?: MapView;
}
