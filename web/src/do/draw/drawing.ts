/** Draw and edit regions on the map with terra-draw, which is loaded when somebody first draws. */

import type { GeoJSONStoreFeatures, TerraDraw } from "terra-draw";
import type { MapView } from "../../map/view.ts";
import type { Place } from "../filter/model.ts";

export type DrawMode = "polygon" | "rectangle" | "circle" | "point";

export const DRAW_MODES: readonly { mode: DrawMode; label: string; hint: string }[] = [
  { mode: "polygon", label: "Polygon", hint: "Click the corners; click the first corner again or press Enter to finish." },
  { mode: "rectangle", label: "Rectangle", hint: "Click one corner, then the opposite one." },
  { mode: "circle", label: "Circle", hint: "Click the centre, then a point of the circle." },
  { mode: "point", label: "Point", hint: "Click the place." },
];

/** Colours of the drawing. terra-draw takes them as text; they suit light and dark maps. */
const COLOUR = "#b5179e";
const DIGITS = 9;

/** One drawing at a time on one map. Callers stop it when it is done, cancelled or not needed any more. */
export class Drawing {
  private readonly map: MapView;
  private draw: TerraDraw | null = null;
  private attempt = 0;

  constructor(map: MapView) {
    this.map = map;
  }

  get isActive(): boolean {
    return this.draw !== null;
  }

  /** Let the person draw; `onDone` gets the place in the user's coordinates. */
  async start(mode: DrawMode, onDone: (place: Place) => void): Promise<void> {
    const draw = await this.begin();
    if (draw === null) return;
    draw.setMode(mode);
    draw.on("finish", (id) => {
      const place = this.placeOf(draw.getSnapshotFeature(id), null);
      this.stop();
      if (place !== null) onDone(place);
    });
  }

  /** Let the person move, add and remove vertices of a region; `onChange` gets each state. Return false if it cannot. */
  async edit(place: Place, onChange: (place: Place) => void): Promise<boolean> {
    if (place.type === "MultiPolygon") return false;
    const draw = await this.begin();
    if (draw === null) return false;
    const original = new Map<string, GeoJSON.Position>();
    const [added] = draw.addFeatures([this.featureOf(place, original)]);
    if (added?.id === undefined || !added.valid) {
      this.stop();
      return false;
    }
    const { id } = added;
    draw.setMode("select");
    draw.selectFeature(id);
    draw.on("finish", (changed) => {
      const now = changed === id ? this.placeOf(draw.getSnapshotFeature(id), original) : null;
      if (now !== null) onChange(now);
    });
    return true;
  }

  stop(): void {
    this.attempt++;
    const draw = this.draw;
    this.draw = null;
    if (draw === null || this.map.isDestroyed) return; // Panels go after the map.
    draw.clear();
    draw.stop();
  }

  private async begin(): Promise<TerraDraw | null> {
    this.stop();
    const attempt = this.attempt;
    const [terra, adapters] = await Promise.all([import("terra-draw"), import("terra-draw-maplibre-gl-adapter")]);
    if (attempt !== this.attempt || this.map.isDestroyed) return null; // stopped, or started again, while the code was loading
    const styles = { fillColor: COLOUR, outlineColor: COLOUR, fillOpacity: 0.2, outlineWidth: 2 } as const;
    const vertices = { draggable: true, deletable: true, midpoints: true } as const;
    const editable = { feature: { draggable: true, coordinates: vertices } };
    this.draw = new terra.TerraDraw({
      adapter: new adapters.TerraDrawMapLibreGLAdapter({ map: this.map.maplibre, coordinatePrecision: DIGITS }),
      modes: [
        new terra.TerraDrawPolygonMode({ styles }),
        new terra.TerraDrawRectangleMode({ styles }),
        new terra.TerraDrawCircleMode({ styles }),
        new terra.TerraDrawPointMode({ styles: { pointColor: COLOUR, pointWidth: 6 } }),
        new terra.TerraDrawSelectMode({
          flags: { polygon: editable, point: { feature: { draggable: true } } },
          styles: {
            selectedPolygonColor: COLOUR,
            selectedPolygonOutlineColor: COLOUR,
            selectedPointColor: COLOUR,
            selectionPointColor: "#ffffff",
            selectionPointOutlineColor: COLOUR,
            selectionPointOutlineWidth: 2,
            midPointColor: COLOUR,
          },
        }),
      ],
    });
    this.draw.start();
    return this.draw;
  }

  /** Return the feature that terra-draw edits; `original` keeps the exact coordinates of its vertices. */
  private featureOf(place: GeoJSON.Polygon | GeoJSON.Point, original: Map<string, GeoJSON.Position>): GeoJSONStoreFeatures {
    const convert = (position: GeoJSON.Position): [number, number] => {
      const shown = this.map.project([position[0] ?? 0, position[1] ?? 0]).map(roundedTo) as [number, number];
      original.set(shown.join(), position);
      return shown;
    };
    return place.type === "Point"
      ? { type: "Feature", properties: { mode: "point" }, geometry: { type: "Point", coordinates: convert(place.coordinates) } }
      : {
          type: "Feature",
          properties: { mode: "polygon" },
          geometry: { type: "Polygon", coordinates: place.coordinates.map((ring) => ring.map(convert)) },
        };
  }

  private placeOf(feature: GeoJSONStoreFeatures | undefined, original: Map<string, GeoJSON.Position> | null): Place | null {
    if (feature === undefined) return null;
    return drawnPlace(feature.geometry, (position) => {
      const shown: [number, number] = [position[0] ?? 0, position[1] ?? 0];
      return original?.get(shown.map(roundedTo).join()) ?? this.map.unproject(shown).map(readable);
    });
  }
}

/** Return what terra-draw made as a place; lines are none. */
export function drawnPlace(
  geometry: GeoJSON.Geometry,
  convert: (position: GeoJSON.Position) => GeoJSON.Position,
): Place | null {
  if (geometry.type === "Point") return { type: "Point", coordinates: convert(geometry.coordinates) };
  if (geometry.type !== "Polygon") return null;
  const rings = geometry.coordinates.map((ring) => closedRing(ring.map(convert)));
  return { type: "Polygon", coordinates: rings };
}

/** Rounding of drawn coordinates may part the two ends of a ring. */
function closedRing(ring: GeoJSON.Position[]): GeoJSON.Position[] {
  const [first] = ring;
  return first === undefined ? ring : [...ring.slice(0, -1), first];
}

function roundedTo(value: number): number {
  return Number(value.toFixed(DIGITS));
}

/** A pointer is less exact than nine digits: a tenth of a metre in degrees, or seven digits of a plain coordinate. */
function readable(value: number): number {
  return Math.abs(value) < 1000 ? Number(value.toFixed(6)) : Number(value.toPrecision(9));
}
