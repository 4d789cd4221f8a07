/** The map component on MapLibre. It holds no address of its own: base map and worker come through its options. */
import {
  addProtocol,
  AttributionControl,
  type GeoJSONSource,
  Map as MapLibre,
  type MapMouseEvent,
  NavigationControl,
  removeProtocol,
  type SourceSpecification,
  type StyleSpecification,
  setWorkerUrl,
} from "maplibre-gl";
import "maplibre-gl/dist/maplibre-gl.css";
import "./map.css";
import { addFurniture } from "./furniture.ts";
import { addGrid } from "./grid.ts";
import { StatedFeatures } from "./stated.ts";
import { boundsOf, IDENTITY, mapGeometry, planeAround, type Position, type Projection, projectionOf } from "./plane.ts";
import { baseLayers, dataLayers, DRAWING_ORDER, FINE_ZOOM, layerId, PALETTES } from "./style.ts";
import type { BasemapPart, Feature, FeatureState, Hit, LayerName, MapOptions, MapView, Theme } from "./view.ts";

const EMPTY: GeoJSON.FeatureCollection = { type: "FeatureCollection", features: [] };
const CLICK_SLACK = 4; // pixels around the pointer that count as hit
const FIT_ZOOM = 16;
const REFRESH_MILLISECONDS = 3000;
// The fine coast keeps the only worker of a small machine busy for seconds: what the map is about comes first.
const FINE_DELAY_MILLISECONDS = 5000;
const TILE_LAYER = "subscriptions"; // the layer of the server's vector tiles
// A flash shows a subscription, which is what the pointer means.
const QUERIED_LAYERS = DRAWING_ORDER.filter((layer) => layer !== "flashes").flatMap((layer) =>
  (["fill", "line", "point"] as const).map((shape) => layerId(layer, shape)),
);
let views = 0;

/** Make a map in `host`; resolves when it can be told what to show. */
export async function createMapView(host: HTMLElement, options: MapOptions): Promise<MapView> {
  const view = new MapLibreView(host, options);
  await view.ready;
  return view;
}

class MapLibreView implements MapView {
  readonly maplibre: MapLibre;
  readonly project: (xy: Position) => Position;
  readonly unproject: (lngLat: Position) => Position;
  readonly ready: Promise<void>;
  isDestroyed = false;
  readonly #options: MapOptions;
  readonly #protocol: string;
  readonly #projection: Projection;
  readonly #hoverHandlers = new Set<(hit: Hit | null, at: Position | null) => void>();
  readonly #cleanups: (() => void)[] = [];
  readonly #stated = new StatedFeatures();
  #hovered: Hit | null = null;
  #hoverFrame = 0;
  #refreshTimer: ReturnType<typeof setTimeout> | null = null;
  #padding = { top: 40, right: 40, bottom: 40, left: 40 };

  constructor(host: HTMLElement, options: MapOptions) {
    this.#options = options;
    this.#protocol = `basemap${++views}`;
    this.#projection = options.plain ? projectionOf(options.plane ?? planeAround(options.bounds)) : IDENTITY;
    this.project = this.#projection.project;
    this.unproject = this.#projection.unproject;
    setWorkerUrl(options.workerUrl);
    addProtocol(this.#protocol, (request) => this.#loadGlyphs(request.url));
    const { subscriptionTiles: tiles } = options;
    this.maplibre = new MapLibre({
      container: host,
      style: this.#style(),
      ...this.#firstView(),
      attributionControl: false,
      cooperativeGestures: options.cooperative ?? false,
      dragRotate: false,
      touchPitch: false,
      pitchWithRotate: false,
      maxPitch: 0,
      maxZoom: 22,
      renderWorldCopies: !options.plain,
      fadeDuration: 0,
      ...(tiles?.headers && { transformRequest: (url: string) => this.#withHeaders(url) }),
    });
    this.maplibre.touchZoomRotate.disableRotation();
    this.maplibre.getCanvas().setAttribute("aria-label", options.label ?? "Map");
    this.ready = this.#start();
  }

  setFeatures(layer: LayerName, features: Feature[]): void {
    if (this.isDestroyed) return;
    const source = this.#source(layer);
    if (source === undefined) this.#refreshTilesSoon();
    else void source.setData({ type: "FeatureCollection", features: features.map((one) => this.#feature(one)) });
  }

  update(layer: LayerName, changed: Feature[], removed: string[]): void {
    if (this.isDestroyed || changed.length + removed.length === 0) return;
    const source = this.#source(layer);
    if (source === undefined) {
      this.#refreshTilesSoon();
      return;
    }
    // A feature that is added under an id replaces the one that has it.
    void source.updateData({ add: changed.map((one) => this.#feature(one)), remove: removed });
    for (const id of removed) {
      if (this.#stated.remove(layer, id)) this.maplibre.removeFeatureState({ source: layer, id });
    }
  }

  setState(layer: LayerName, id: string, state: FeatureState): void {
    if (this.isDestroyed) return;
    this.#stated.add(layer, id);
    this.maplibre.setFeatureState(this.#target(layer, id), { ...state });
  }

  clearState(layer: LayerName): void {
    if (this.isDestroyed) return;
    this.#stated.clear(layer);
    const { source, sourceLayer } = this.#target(layer, "");
    this.maplibre.removeFeatureState(sourceLayer === undefined ? { source } : { source, sourceLayer });
  }

  show(layer: LayerName, visible: boolean): void {
    if (this.isDestroyed) return;
    for (const shape of ["fill", "line", "point", "label"] as const) {
      this.maplibre.setLayoutProperty(layerId(layer, shape), "visibility", visible ? "visible" : "none");
    }
  }

  fit(geometries: GeoJSON.Geometry[], options: { maxZoom?: number; animate?: boolean } = {}): void {
    const bounds = boundsOf(geometries.map((geometry) => mapGeometry(geometry, this.project)));
    if (this.isDestroyed || bounds === null) return;
    this.maplibre.fitBounds(bounds, {
      padding: this.#fittingPadding(),
      maxZoom: options.maxZoom ?? FIT_ZOOM,
      animate: options.animate ?? true,
      duration: 600,
    });
  }

  setPadding(padding: { top?: number; right?: number; bottom?: number; left?: number }): void {
    this.#padding = { ...this.#padding, ...padding };
  }

  setTheme(theme: Theme): void {
    if (this.isDestroyed) return;
    const host = this.maplibre.getContainer();
    host.dataset.theme = theme;
    for (const layer of this.#layers(theme)) {
      if (!("paint" in layer)) continue;
      for (const [name, value] of Object.entries(layer.paint ?? {})) {
        // Only colours differ between themes: other properties would be computed again for nothing.
        if (name.endsWith("-color")) this.maplibre.setPaintProperty(layer.id, name as "fill-color", value as string);
      }
    }
  }

  onClick(handler: (hits: Hit[], at: Position) => void): () => void {
    const listen = (event: MapMouseEvent) => {
      handler(this.#hits(event, CLICK_SLACK), this.unproject([event.lngLat.lng, event.lngLat.lat]));
    };
    this.maplibre.on("click", listen);
    return () => {
      this.maplibre.off("click", listen);
    };
  }

  onHover(handler: (hit: Hit | null, at: Position | null) => void): () => void {
    this.#hoverHandlers.add(handler);
    return () => {
      this.#hoverHandlers.delete(handler);
    };
  }

  destroy(): void {
    this.isDestroyed = true;
    cancelAnimationFrame(this.#hoverFrame);
    if (this.#refreshTimer !== null) clearTimeout(this.#refreshTimer);
    for (const clean of this.#cleanups) clean();
    this.maplibre.remove();
    removeProtocol(this.#protocol);
  }

  /** Tiles of subscriptions are made anew after changes, not more often than every REFRESH_MILLISECONDS. */
  #refreshTilesSoon(): void {
    this.#refreshTimer ??= setTimeout(() => {
      this.#refreshTimer = null;
      this.maplibre.refreshTiles("subscriptions");
    }, REFRESH_MILLISECONDS);
  }

  async #start(): Promise<void> {
    const { maplibre: map } = this;
    await new Promise<void>((resolve) => {
      // "style.load" comes as soon as sources exist; "load" would wait for the base map.
      if (map.isStyleLoaded()) resolve();
      else void map.once("style.load", () => { resolve(); });
    });
    map.getContainer().dataset.theme = this.#options.theme;
    map.addControl(new AttributionControl({ compact: true }), "bottom-right");
    map.addControl(new NavigationControl({ showCompass: false }), "top-left");
    this.#cleanups.push(addFurniture(map, this.#options.plain, this.#projection));
    if (this.#options.plain) this.#cleanups.push(addGrid(map, this.#projection));
    else void this.#loadBasemap();
    map.on("mousemove", (event) => { this.#hover(event); });
    map.on("mouseout", () => { this.#tellHover(null, null); });
  }

  async #loadBasemap(): Promise<void> {
    const load = async (part: BasemapPart) => {
      const data = await this.#options.basemap.load(part);
      if (data !== null && !this.isDestroyed) await this.maplibre.getSource<GeoJSONSource>(part)?.setData(data);
    };
    await Promise.all((["land", "borders", "places"] as const).map(load));
    if (this.isDestroyed) return;
    const loadFine = () => {
      if (this.maplibre.getZoom() < FINE_ZOOM - 0.5) return;
      this.maplibre.off("zoom", loadFine);
      const timer = setTimeout(() => {
        void Promise.all((["land-fine", "borders-fine"] as const).map(load)).then(() => {
          if (this.isDestroyed) return;
          // Until here the coarse coast was shown at all zoom levels.
          for (const part of ["land", "borders"]) this.maplibre.setLayerZoomRange(part, 0, FINE_ZOOM);
        });
      }, FINE_DELAY_MILLISECONDS);
      this.#cleanups.push(() => { clearTimeout(timer); });
    };
    this.maplibre.on("zoom", loadFine);
    loadFine();
  }

  async #loadGlyphs(url: string): Promise<{ data: ArrayBuffer }> {
    const range = Number(/\/(\d+)-\d+$/.exec(url)?.[1] ?? 0);
    return { data: (await this.#options.basemap.glyphs(range)) ?? new ArrayBuffer(0) };
  }

  #withHeaders(url: string): { url: string; headers?: Record<string, string> } {
    const tiles = this.#options.subscriptionTiles;
    const isOurs = tiles !== undefined && url.startsWith(tiles.url.slice(0, tiles.url.indexOf("{")));
    return isOurs && tiles.headers ? { url, headers: tiles.headers() } : { url };
  }

  #firstView(): { bounds?: [number, number, number, number]; center?: [number, number]; zoom?: number } {
    const { bounds } = this.#options;
    if (!bounds) return this.#options.plain ? { center: [0, 0], zoom: 4 } : { center: [10, 30], zoom: 1.2 };
    const [west, south] = this.project([bounds[0], bounds[1]]);
    const [east, north] = this.project([bounds[2], bounds[3]]);
    return { bounds: [west, south, east, north] };
  }

  #style(): StyleSpecification {
    const geojson = (attribution?: string): SourceSpecification => ({
      type: "geojson",
      data: EMPTY,
      ...(attribution === undefined ? {} : { attribution }),
    });
    const sources: Record<string, SourceSpecification> = {};
    const { plain, tiles, basemap, subscriptionTiles } = this.#options;
    if (plain) sources.grid = geojson();
    else {
      for (const part of ["land", "borders", "land-fine", "borders-fine", "places"]) sources[part] = geojson();
      for (const part of ["land", "land-fine"]) sources[part] = geojson(basemap.attribution);
      if (tiles) {
        sources.tiles = { type: "raster", tiles: [tiles.url], tileSize: 256, attribution: escapeHtml(tiles.attribution) };
      }
    }
    for (const layer of DRAWING_ORDER) {
      sources[layer] =
        layer === "subscriptions" && subscriptionTiles
          ? { type: "vector", tiles: [subscriptionTiles.url], promoteId: { [TILE_LAYER]: "key" }, maxzoom: 16 }
          : { type: "geojson", data: EMPTY, promoteId: "id", maxzoom: plain ? 20 : 16 };
    }
    return {
      version: 8,
      glyphs: `${this.#protocol}://{fontstack}/{range}`,
      sources,
      layers: this.#layers(this.#options.theme),
    };
  }

  #layers(theme: Theme): StyleSpecification["layers"] {
    const palette = PALETTES[theme];
    const { plain, tiles, subscriptionTiles } = this.#options;
    return [
      ...baseLayers(palette, { plain, tiles: tiles !== undefined }),
      ...dataLayers(palette, subscriptionTiles ? TILE_LAYER : undefined),
    ];
  }

  #feature({ id, geometry, kind, properties }: Feature): GeoJSON.Feature {
    return {
      type: "Feature",
      geometry: this.#options.plain ? mapGeometry(geometry, this.project) : geometry,
      properties: { ...properties, id, kind },
    };
  }

  /** The source of a layer; undefined if the server's tiles fill it. */
  #source(layer: LayerName): GeoJSONSource | undefined {
    const source = this.maplibre.getSource(layer);
    return source?.type === "geojson" ? (source as GeoJSONSource) : undefined;
  }

  #target(layer: LayerName, id: string): { source: string; sourceLayer?: string; id: string } {
    const isTiled = layer === "subscriptions" && this.#options.subscriptionTiles !== undefined;
    return isTiled ? { source: layer, sourceLayer: TILE_LAYER, id } : { source: layer, id };
  }

  /** Features near the pointer, topmost first, each once. */
  #hits(event: MapMouseEvent, slack: number): Hit[] {
    const { x, y } = event.point;
    const found = this.maplibre.queryRenderedFeatures(
      [[x - slack, y - slack], [x + slack, y + slack]],
      { layers: QUERIED_LAYERS },
    ); // prettier-ignore
    const hits = new Map<string, Hit>();
    for (const { source, id } of found) {
      if (id !== undefined) hits.set(`${source} ${id}`, { layer: source as LayerName, id: String(id) });
    }
    return [...hits.values()];
  }

  /** Look up what the pointer is over at most once per frame, and not while the map moves. */
  #hover(event: MapMouseEvent): void {
    if (this.#hoverFrame !== 0 || this.maplibre.isMoving()) return;
    this.#hoverFrame = requestAnimationFrame(() => {
      this.#hoverFrame = 0;
      this.#tellHover(this.#hits(event, 2)[0] ?? null, this.unproject([event.lngLat.lng, event.lngLat.lat]));
    });
  }

  #tellHover(hit: Hit | null, at: Position | null): void {
    const before = this.#hovered;
    if (before?.layer !== hit?.layer || before?.id !== hit?.id) {
      if (before) this.setState(before.layer, before.id, { hover: false });
      if (hit) this.setState(hit.layer, hit.id, { hover: true });
      this.#hovered = hit;
      this.maplibre.getCanvas().classList.toggle("map-over-feature", hit !== null);
    }
    for (const handler of this.#hoverHandlers) handler(hit, at);
  }

  /** Padding for fitBounds; less of it where the map is too small for all. */
  #fittingPadding(): { top: number; right: number; bottom: number; left: number } {
    const { clientWidth: width, clientHeight: height } = this.maplibre.getContainer();
    const { top, right, bottom, left } = this.#padding;
    const x = Math.min(1, (width * 0.7) / (left + right));
    const y = Math.min(1, (height * 0.7) / (top + bottom));
    return { top: top * y, right: right * x, bottom: bottom * y, left: left * x };
  }
}

/** MapLibre shows attributions as HTML: text of the user's settings must not become markup. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
