import { describe, expect, it } from "vitest";
import { boxPolygon } from "../../src/do/filter/json.ts";
import { sharedPart, unionOf } from "../../src/do/places/clipping.ts";
import { contactsOf, gapBetween } from "../../src/do/places/segments.ts";
import { asPlace, drawn, frameOf, pictureParts } from "../../src/ask/picture.ts";

const SQUARE = boxPolygon(0, 0, 4, 4);

function kinds(...given: Parameters<typeof pictureParts>): string[] {
  return pictureParts(...given).map((part) => `${part.kind} ${part.geometry.type}`);
}

describe("the parts of a picture", () => {
  it("has the shared part of two that overlap", () => {
    const parts = pictureParts(SQUARE, boxPolygon(2, 2, 6, 6), "overlaps");
    expect(parts.map((part) => part.kind)).toEqual(["asked", "found", "shared"]);
    const shared = parts[2]?.geometry;
    expect(shared?.type === "Polygon" && new Set(shared.coordinates[0]?.map(String))).toEqual(
      new Set(["2,2", "4,2", "4,4", "2,4"]),
    );
  });

  it("has the edge at which two meet", () => {
    const parts = pictureParts(SQUARE, boxPolygon(4, 1, 8, 3), "meets");
    expect(parts.map((part) => part.kind)).toEqual(["asked", "found", "contact"]);
    expect(parts[2]?.geometry).toMatchObject({ type: "MultiLineString", coordinates: [expect.arrayContaining([[4, 1], [4, 3]])] });
  });

  it("has the corner at which two meet", () => {
    expect(pictureParts(SQUARE, boxPolygon(4, 4, 8, 8), "meets")[2]?.geometry).toEqual({
      type: "MultiPoint",
      coordinates: [[4, 4]],
    });
  });

  it("has the gap between two that are apart", () => {
    expect(pictureParts(SQUARE, { type: "Point", coordinates: [7, 2] }, "disjoint")[2]).toEqual({
      kind: "gap",
      geometry: { type: "LineString", coordinates: [[7, 2], [4, 2]] },
    });
  });

  it("shows what there is if a message has no region", () => {
    expect(kinds(SQUARE, null, null)).toEqual(["asked Polygon"]);
    expect(kinds(SQUARE, boxPolygon(1, 1, 2, 2), null)).toEqual(["asked Polygon", "found Polygon"]);
  });

  it("shows the whole of equals, and both of covers", () => {
    expect(kinds(SQUARE, SQUARE, "equals")).toEqual(["asked Polygon", "found Polygon", "shared Polygon"]);
    expect(kinds(boxPolygon(1, 1, 4, 2), SQUARE, "covers")).toContain("contact MultiLineString");
  });

  it("takes regions and points alone", () => {
    expect(asPlace({ type: "LineString", coordinates: [] })).toBeNull();
    expect(asPlace(null)).toBeNull();
  });
});

describe("clipping", () => {
  it("finds nothing in common of regions that are apart", () => {
    expect(sharedPart(SQUARE, boxPolygon(10, 10, 11, 11))).toBeNull();
  });

  it("unites regions, and keeps those apart as parts", () => {
    expect(unionOf([SQUARE, boxPolygon(2, 0, 8, 4)]).type).toBe("Polygon");
    expect(unionOf([SQUARE, boxPolygon(10, 0, 18, 4)]).type).toBe("MultiPolygon");
    expect(unionOf([{ type: "Point", coordinates: [1, 2] }])).toEqual({ type: "Point", coordinates: [1, 2] });
  });
});

describe("contacts and gaps", () => {
  it("leave crossings out", () => {
    expect(contactsOf(SQUARE, boxPolygon(2, 2, 6, 6))).toEqual({ points: [], lines: [] });
  });

  it("find the nearest place on an edge", () => {
    expect(gapBetween(SQUARE, boxPolygon(6, 1, 8, 3))?.map((point) => point[0])).toEqual([4, 6]);
  });
});

describe("the frame", () => {
  it("keeps proportions and turns the y axis", () => {
    const frame = frameOf([SQUARE], 200, 100, { plain: true, margin: 10 });
    expect(frame.toDrawing([0, 0])).toEqual([60, 90]);
    expect(frame.toDrawing([4, 4])).toEqual([140, 10]);
  });

  it("shortens degrees of longitude towards the poles", () => {
    const frame = frameOf([boxPolygon(0, 59, 2, 61)], 200, 200, { plain: false, margin: 0 });
    const [left] = frame.toDrawing([0, 60]);
    const [right] = frame.toDrawing([2, 60]);
    expect(right - left).toBeCloseTo(100);
  });

  it("gives a region too small to be seen a dot", () => {
    const frame = frameOf([boxPolygon(0, 0, 1000, 1000)], 100, 100, { plain: true });
    expect(drawn(boxPolygon(5, 5, 6, 6), frame).dots).toHaveLength(1);
    expect(drawn(boxPolygon(0, 0, 500, 600), frame).dots).toHaveLength(0);
  });

  it("draws a single point in the middle", () => {
    const frame = frameOf([{ type: "Point", coordinates: [3, 3] }], 100, 100, { plain: true });
    expect(drawn({ type: "Point", coordinates: [3, 3] }, frame)).toEqual({ path: "", dots: [[50, 50]] });
  });
});
