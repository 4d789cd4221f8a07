/** The base map of a report: files that the built script carries, so the page needs no other. */
import places from "../../basemap/places.json?raw";
import world from "../../basemap/world-50m.json?raw";
import { ATTRIBUTION, partOf, type Places, type World } from "../map/basemap/world.ts";
import type { BasemapPart, BasemapSource } from "../map/view.ts";

const GLYPHS = import.meta.glob<string>("../../basemap/glyphs/{0,256}-*.pbf", {
  query: "?url&inline",
  import: "default",
  eager: true,
});

/** Fine land and borders are those of the coarse world: they would make each report three times as large. */
export function carriedBasemap(): BasemapSource {
  let parsed: World | null = null;
  return {
    attribution: ATTRIBUTION,
    load: (part: BasemapPart) => {
      if (part === "places") return Promise.resolve(partOf(part, JSON.parse(places) as Places));
      parsed ??= JSON.parse(world) as World;
      return Promise.resolve(partOf(part, parsed));
    },
    glyphs: (range: number) => {
      const data = GLYPHS[`../../basemap/glyphs/${range}-${range + 255}.pbf`];
      return Promise.resolve(data === undefined ? null : bytesOf(data));
    },
  };
}

/** The bytes of a data: address in Base64. */
function bytesOf(address: string): ArrayBuffer {
  const text = atob(address.slice(address.indexOf(",") + 1));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer;
}
