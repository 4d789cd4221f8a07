import { describe, expect, it } from "vitest";
import { boundsOf, formatCoordinate, mapGeometry, niceStep, planeAround, projectionOf } from "../src/map/plane.ts";
import { ticks } from "../src/map/grid.ts";
import { formatMetres } from "../src/map/furniture.ts";

const PLANE = { x: 5000, y: -300, span: 16_000 };

describe("projectionOf", () => {
  const { project, unproject } = projectionOf(PLANE);

  it("puts the centre of the plane at the centre of the canvas", () => {
    expect(project([5000, -300])).toEqual([0, 0]);
  });

  it("is undone by unproject", () => {
    for (const xy of [[5000, -300], [5500, 200], [-2000, 3000], [9999.5, -7000]] as [number, number][]) {
      const [x, y] = unproject(project(xy));
      expect(x).toBeCloseTo(xy[0], 6);
      expect(y).toBeCloseTo(xy[1], 6);
    }
  });

  it("lies on the Mercator square as the server's tiles do", () => {
    const mercatorY = (latitude: number) => 0.5 - Math.log(Math.tan(Math.PI / 4 + (latitude * Math.PI) / 360)) / (2 * Math.PI);
    const [px, py] = [6200, 1700];
    const [longitude, latitude] = project([px, py]);
    expect((longitude + 180) / 360).toBeCloseTo(0.5 + (px - PLANE.x) / PLANE.span, 12);
    expect(mercatorY(latitude)).toBeCloseTo(0.5 - (py - PLANE.y) / PLANE.span, 12);
  });

  it("has a plane around nothing, a point and a box", () => {
    expect(planeAround(null).span).toBeGreaterThan(0);
    expect(planeAround([3, 4, 3, 4])).toEqual({ x: 3, y: 4, span: 16 });
    expect(planeAround([0, 0, 10, 2])).toEqual({ x: 5, y: 1, span: 160 });
  });
});

describe("geometries", () => {
  const geometries: GeoJSON.Geometry[] = [
    { type: "Point", coordinates: [1, 2] },
    { type: "MultiPoint", coordinates: [[3, -1], [0, 0]] },
    { type: "LineString", coordinates: [[0, 0], [1, 7]] },
    { type: "MultiLineString", coordinates: [[[0, 0], [1, 1]]] },
    { type: "Polygon", coordinates: [[[0, 0], [9, 0], [0, 1], [0, 0]]] },
    { type: "MultiPolygon", coordinates: [[[[0, 0], [1, 0], [0, -5], [0, 0]]]] },
  ];

  it("are mapped position by position, whatever their type", () => {
    const collection: GeoJSON.Geometry = { type: "GeometryCollection", geometries };
    const moved = mapGeometry(collection, ([x, y]) => [x + 10, y * 2]);
    expect(boundsOf([moved])).toEqual([10, -10, 19, 14]);
    expect(boundsOf([collection])).toEqual([0, -5, 9, 7]);
    expect(mapGeometry(collection, (xy) => xy)).toEqual(collection);
  });

  it("have no bounds if there are none", () => {
    expect(boundsOf([])).toBeNull();
  });
});

describe("steps and labels", () => {
  it.each([[1, 1], [1.9, 1], [2, 2], [4.99, 2], [5, 5], [73, 50], [0.03, 0.02], [1e-9, 1e-9], [1e12, 1e12]])(
    "the step below %d is %d",
    (most, step) => { expect(niceStep(most)).toBeCloseTo(step, 12); },
  );

  it("ticks are multiples of the step within the range", () => {
    expect(ticks(-3, 12, 5)).toEqual([0, 5, 10]);
    expect(ticks(1, 4, 5)).toEqual([]);
  });

  it("labels have the digits that the step needs", () => {
    expect(formatCoordinate(12.3456, 0.01)).toBe("12.35");
    expect(formatCoordinate(-0.0000001, 1)).toBe("0");
    expect(formatCoordinate(120_000, 5000)).toBe("120,000");
    expect([formatMetres(2000), formatMetres(50), formatMetres(0.2)]).toEqual(["2 km", "50 m", "20 cm"]);
  });
});
