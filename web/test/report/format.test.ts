import { describe, expect, it } from "vitest";
import { type DetailLine, geometryOf, partsOf, subscriptionsOf } from "../../src/report/format.ts";

describe("geometryOf", () => {
  it("reads points, polygons with holes and several parts", () => {
    expect(geometryOf([1.5, 2])).toEqual({ type: "Point", coordinates: [1.5, 2] });
    const square = [0, 0, 4, 0, 0, 4, -4, 0];
    const hole = [1, 1, 0, 1, 1, 0];
    expect(geometryOf([10, 20, 0.5, [[square, hole]]])).toEqual({
      type: "Polygon",
      coordinates: [
        [[10, 20], [12, 20], [12, 22], [10, 22], [10, 20]],
        [[10.5, 20.5], [10.5, 21], [11, 21], [10.5, 20.5]],
      ],
    }); // prettier-ignore
    expect(geometryOf([0, 0, 1, [[square], [square]]])).toMatchObject({ type: "MultiPolygon" });
  });

  it("reads several shapes of one subscriber, and none", () => {
    expect(geometryOf(null)).toBeNull();
    const geometry = geometryOf({ shapes: [[1, 2], [3, 4]] });
    expect(geometry === null ? [] : partsOf(geometry)).toHaveLength(2);
  });
});

describe("subscriptionsOf", () => {
  it("adds steps up", () => {
    const detail: DetailLine = [null, [7, 1, 30], "012"];
    expect(subscriptionsOf(detail)).toEqual([7, 8, 38]);
  });
});
