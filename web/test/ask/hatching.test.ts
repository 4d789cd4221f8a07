import type { Map as MapLibre } from "maplibre-gl";
import { describe, expect, it, vi } from "vitest";
import { hatchRelation, hatchTile, parseColour } from "../../src/ask/hatching.ts";

describe("hatching", () => {
  it("has lines that continue from tile to tile", () => {
    const tile = hatchTile([255, 0, 0], 1);
    const alpha = (x: number, y: number) => tile[((y % 12) * 12 + (x % 12)) * 4 + 3];
    expect(alpha(0, 0)).toBe(150);
    expect(alpha(6, 0)).toBe(0);
    expect(alpha(1, 11)).toBe(alpha(0, 12));
    expect(tile).not.toEqual(hatchTile([255, 0, 0], -1));
  });

  it("reads colours", () => {
    expect(parseColour(" #2463c9")).toEqual([0x24, 0x63, 0xc9]);
    expect(parseColour("blue")).toEqual([128, 128, 128]);
  });

  it("adds layers once, and renews colours", () => {
    const layers = new Set(["relation-line"]);
    const images = new Set<string>();
    const [addLayer, updateImage] = [vi.fn((layer: { id: string }) => layers.add(layer.id)), vi.fn()];
    const map = {
      getSource: () => ({}),
      hasImage: (name: string) => images.has(name),
      addImage: (name: string) => images.add(name),
      updateImage,
      getLayer: (id: string) => (layers.has(id) ? {} : undefined),
      addLayer,
    } as unknown as MapLibre;
    hatchRelation(map, () => "#102030");
    hatchRelation(map, () => "#405060");
    expect(addLayer).toHaveBeenCalledTimes(3);
    expect(updateImage).toHaveBeenCalledTimes(2);
  });
});
