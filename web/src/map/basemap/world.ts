/** Land, borders and places as GeoJSON from the compact files that scripts/basemap.ts makes. */
import { feature, mesh } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import type { BasemapPart } from "../view.ts";

export type World = Topology<{ countries: GeometryCollection; land: GeometryCollection }>;
export type Places = [name: string, longitude: number, latitude: number, rank: number][];

export const ATTRIBUTION = "Natural Earth, GeoNames (CC BY 4.0)";

/** Which file holds a part. */
export function fileOf(part: BasemapPart): "world-50m" | "world-10m" | "places" {
  return part === "places" ? part : part.endsWith("-fine") ? "world-10m" : "world-50m";
}

export function partOf(part: BasemapPart, content: World | Places): GeoJSON.FeatureCollection {
  if (part === "places") return placesOf(content as Places);
  const world = content as World;
  if (part.startsWith("land")) return feature(world, world.objects.land);
  const lines = mesh(world, world.objects.countries, (a, b) => a !== b);
  return { type: "FeatureCollection", features: [{ type: "Feature", properties: {}, geometry: lines }] };
}

function placesOf(places: Places): GeoJSON.FeatureCollection {
  return {
    type: "FeatureCollection",
    features: places.map(([name, longitude, latitude, rank], order) => ({
      type: "Feature",
      properties: { name, rank, order },
      geometry: { type: "Point", coordinates: [longitude, latitude] },
    })),
  };
}
