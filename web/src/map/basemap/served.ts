/** The base map of the served page: files beside the page, fetched when they are needed. */
import coarse from "../../../basemap/world-50m.json?url";
import fine from "../../../basemap/world-10m.json?url";
import places from "../../../basemap/places.json?url";
import type { BasemapPart, BasemapSource } from "../view.ts";
import { ATTRIBUTION, fileOf, partOf, type Places, type World } from "./world.ts";

const FILES = { "world-50m": coarse, "world-10m": fine, places };
const GLYPHS = import.meta.glob<string>("../../../basemap/glyphs/*.pbf", {
  query: "?url",
  import: "default",
  eager: true,
});

export function servedBasemap(): BasemapSource {
  const files = new Map<string, Promise<World | Places>>();
  const open = (file: keyof typeof FILES) => {
    const found = files.get(file) ?? fetchJson(FILES[file]);
    files.set(file, found);
    return found;
  };
  return {
    attribution: ATTRIBUTION,
    load: async (part: BasemapPart) => partOf(part, await open(fileOf(part))),
    glyphs: async (range: number) => {
      const address = GLYPHS[`../../../basemap/glyphs/${range}-${range + 255}.pbf`];
      return address === undefined ? null : (await fetchFile(address)).arrayBuffer();
    },
  };
}

async function fetchFile(address: string): Promise<Response> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer;
}

async function fetchJson(address: string): Promise<World | Places> {
  return (await (await fetchFile(address)).json()) as World | Places;
}
