import { describe, expect, it } from "vitest";
import { baseLayers, dataLayers, type Kind, PALETTES } from "../src/map/style.ts";
import { LAYERS } from "../src/map/view.ts";

/** Kinds of features that may have a label: subscriptions, objects, brokers, and an answer with its relation. */
const LABELLED: readonly Kind[] = ["subscription", "paused", "tracked", "object", "broker", "asked", "found", "shared"];
const LEAST = 4.5; // WCAG 2.2, 1.4.3

/** Contrast of two colours as WCAG defines it. */
function contrast(a: string, b: string): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const part = parseInt(colour.slice(start, start + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Opacity of text that nothing is done with: the last value of its cases. */
function opacityOf(paint: object | undefined): unknown {
  const opacity: unknown = paint !== undefined && "text-opacity" in paint ? paint["text-opacity"] : 1;
  return Array.isArray(opacity) ? opacity.at(-1) : opacity;
}

describe.each(["light", "dark"] as const)("labels in the %s theme", (theme) => {
  const palette = PALETTES[theme];

  it.each(LABELLED)("of the kind %s contrast with their halo and with land", (kind) => {
    expect(contrast(palette.kinds[kind], palette.halo)).toBeGreaterThanOrEqual(LEAST);
    expect(contrast(palette.kinds[kind], palette.land)).toBeGreaterThanOrEqual(LEAST);
  });

  it.each(["subscription", "paused", "tracked", "object"] as const)("of the kind %s contrast with the sea", (kind) => {
    expect(contrast(palette.kinds[kind], palette.sea)).toBeGreaterThanOrEqual(LEAST);
  });

  it("of places contrast with all that lies below them", () => {
    for (const ground of [palette.halo, palette.land, palette.sea]) {
      expect(contrast(palette.place, ground)).toBeGreaterThanOrEqual(LEAST);
    }
  });

  it("lie above all shapes, which would cut them", () => {
    const types = dataLayers(palette).map(({ type }) => type);
    expect(types.slice(0, types.indexOf("symbol"))).not.toContain("symbol");
    expect(new Set(types.slice(types.indexOf("symbol")))).toEqual(new Set(["symbol"]));
  });

  it("are not transparent", () => {
    const layers = [
      ...dataLayers(palette),
      ...baseLayers(palette, { plain: false, tiles: false }),
    ].filter((layer) => layer.type === "symbol");
    expect(layers).toHaveLength(LAYERS.length + 1);
    for (const layer of layers) expect(opacityOf(layer.paint)).toBe(1);
  });
});
