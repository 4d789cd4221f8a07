/** What lies on every map: a scale bar and the coordinates under the pointer. */
import type { Map as MapLibre } from "maplibre-gl";
import { formatCoordinate, niceStep, type Projection } from "./plane.ts";

const WIDEST_BAR = 110; // pixels

/** A length of the ground as text. */
export function formatMetres(metres: number): string {
  return metres >= 1000 ? `${metres / 1000} km` : metres >= 1 ? `${metres} m` : `${Math.round(metres * 100)} cm`;
}

/** Ground length of a pixel at the centre: metres, or the user's units if coordinates are plain. */
function lengthOfPixel(map: MapLibre, plain: boolean, projection: Projection): number {
  const { clientWidth: width, clientHeight: height } = map.getContainer();
  const [a, b] = [map.unproject([width / 2, height / 2]), map.unproject([width / 2 + 100, height / 2])];
  if (!plain) return a.distanceTo(b) / 100;
  return (projection.unproject([b.lng, b.lat])[0] - projection.unproject([a.lng, a.lat])[0]) / 100;
}

/** Add both; returns a function that removes them. */
export function addFurniture(map: MapLibre, plain: boolean, projection: Projection): () => void {
  const host = document.createElement("div");
  host.className = "map-furniture";
  const scale = document.createElement("div");
  scale.className = "map-scale";
  scale.dataset.testid = "scale";
  const place = document.createElement("div");
  place.className = "map-coordinates";
  place.dataset.testid = "coordinates";
  host.append(place, scale);
  map.getContainer().append(host);

  const drawScale = () => {
    const pixel = lengthOfPixel(map, plain, projection);
    if (!(pixel > 0)) return;
    const length = niceStep(pixel * WIDEST_BAR);
    const text = plain ? `${formatCoordinate(length, length)} units` : formatMetres(length);
    scale.textContent = text;
    scale.setAttribute("aria-label", `Scale: the bar is ${text} long`);
    scale.setAttribute("role", "img");
    scale.style.setProperty("width", `${length / pixel}px`);
  };
  const drawPlace = (event: { lngLat: { lng: number; lat: number } }) => {
    const step = plain ? lengthOfPixel(map, plain, projection) : 360 / (512 * 2 ** map.getZoom());
    const [x, y] = projection.unproject([event.lngLat.lng, event.lngLat.lat]);
    place.textContent = `${formatCoordinate(x, step)}, ${formatCoordinate(y, step)}`;
  };
  const clearPlace = () => {
    place.textContent = "";
  };
  map.on("move", drawScale);
  map.on("resize", drawScale);
  map.on("mousemove", drawPlace);
  map.on("mouseout", clearPlace);
  drawScale();
  return () => {
    map.off("move", drawScale);
    map.off("resize", drawScale);
    map.off("mousemove", drawPlace);
    map.off("mouseout", clearPlace);
    host.remove();
  };
}
