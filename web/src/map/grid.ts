/** A grid in the user's coordinates: lines as a source of the map, labels as elements at its edges. */
import type { GeoJSONSource, Map as MapLibre } from "maplibre-gl";
import { formatCoordinate, niceStep, type Position, type Projection } from "./plane.ts";

const PIXELS_PER_LINE = 90; // between two lines, at least
const MARGIN = 1; // how many views beyond each edge lines reach, so that panning shows no end

interface View {
  xmin: number;
  ymin: number;
  xmax: number;
  ymax: number;
  step: number;
}

function viewOf(map: MapLibre, projection: Projection): View {
  const { clientWidth: width, clientHeight: height } = map.getContainer();
  const corner = (x: number, y: number): Position => {
    const { lng, lat } = map.unproject([x, y]);
    return projection.unproject([lng, lat]);
  };
  const [xmin, ymax] = corner(0, 0);
  const [xmax, ymin] = corner(width, height);
  const perPixel = (xmax - xmin) / Math.max(1, width);
  const step = niceStep(perPixel * PIXELS_PER_LINE * 2.5);
  return { xmin, ymin, xmax, ymax, step };
}

/** Multiples of `step` from `from` to `to`. */
export function ticks(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, index) => (first + index) * step);
}

function linesOf(view: View, projection: Projection): GeoJSON.FeatureCollection {
  const [width, height] = [(view.xmax - view.xmin) * MARGIN, (view.ymax - view.ymin) * MARGIN];
  const [left, right] = [view.xmin - width, view.xmax + width];
  const [bottom, top] = [view.ymin - height, view.ymax + height];
  const line = (value: number, from: Position, to: Position): GeoJSON.Feature => ({
    type: "Feature",
    properties: { axis: value === 0 },
    geometry: { type: "LineString", coordinates: [projection.project(from), projection.project(to)] },
  });
  return {
    type: "FeatureCollection",
    features: [
      ...ticks(left, right, view.step).map((x) => line(x, [x, bottom], [x, top])),
      ...ticks(bottom, top, view.step).map((y) => line(y, [left, y], [right, y])),
    ],
  };
}

/** Keep the grid right while the map moves. Returns a function that removes the labels. */
export function addGrid(map: MapLibre, projection: Projection): () => void {
  const host = document.createElement("div");
  host.className = "map-grid-labels";
  host.setAttribute("aria-hidden", "true");
  map.getContainer().append(host);
  let drawn: View | null = null;
  const label = (text: string, axis: "x" | "y", offset: number) => {
    const element = document.createElement("span");
    element.textContent = text;
    element.className = `map-grid-${axis}`;
    element.style.setProperty(axis === "x" ? "left" : "top", `${offset}px`);
    return element;
  };
  const draw = () => {
    const view = viewOf(map, projection);
    const screen = (xy: Position) => map.project(projection.project(xy));
    host.replaceChildren(
      ...ticks(view.xmin, view.xmax, view.step).map((x) =>
        label(formatCoordinate(x, view.step), "x", screen([x, view.ymin]).x),
      ),
      ...ticks(view.ymin, view.ymax, view.step).map((y) =>
        label(formatCoordinate(y, view.step), "y", screen([view.xmin, y]).y),
      ),
    );
    if (drawn !== null && covers(drawn, view)) return;
    drawn = view;
    void map.getSource<GeoJSONSource>("grid")?.setData(linesOf(view, projection));
  };
  map.on("move", draw);
  map.on("resize", draw);
  draw();
  return () => {
    map.off("move", draw);
    map.off("resize", draw);
    host.remove();
  };
}

/** Do the lines drawn for `drawn` still fill `view`? */
function covers(drawn: View, view: View): boolean {
  const [width, height] = [(drawn.xmax - drawn.xmin) * MARGIN, (drawn.ymax - drawn.ymin) * MARGIN];
  return (
    drawn.step === view.step &&
    drawn.xmin - width <= view.xmin &&
    drawn.xmax + width >= view.xmax &&
    drawn.ymin - height <= view.ymin &&
    drawn.ymax + height >= view.ymax
  );
}
