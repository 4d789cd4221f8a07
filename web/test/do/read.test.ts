import { describe, expect, it } from "vitest";
import { circleInDegrees, circleInPlane } from "../../src/do/places/circles.ts";
import { ReadError } from "../../src/do/places/checks.ts";
import { readCap } from "../../src/do/read/cap.ts";
import { readFile, readText } from "../../src/do/read/files.ts";
import { readGeoJson } from "../../src/do/read/geojson.ts";
import { readWkt } from "../../src/do/read/wkt.ts";

const WORLD = { plain: false };
const PLAIN = { plain: true };
const TRIANGLE = [
  [
    [0, 0],
    [4, 0],
    [4, 4],
    [0, 0],
  ],
];

function messageOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ReadError) return error.message;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("GeoJSON", () => {
  it("reads a geometry, a feature and a collection", () => {
    const geometry = { type: "Polygon", coordinates: TRIANGLE };
    const feature = { type: "Feature", id: 7, properties: { name: "hail" }, geometry };
    expect(readGeoJson(JSON.stringify(geometry), WORLD).items[0]?.place).toEqual(geometry);
    expect(readGeoJson(JSON.stringify(feature), WORLD).items[0]).toEqual({
      name: "hail",
      attributes: { name: "hail", id: 7 },
      attribute: "geometry",
      place: geometry,
    });
    const collection = { type: "FeatureCollection", features: [feature, { ...feature, geometry: null }] };
    expect(readGeoJson(JSON.stringify(collection), WORLD).items.map((item) => item.place)).toEqual([geometry, null]);
  });

  it("drops heights", () => {
    expect(readGeoJson('{"type": "Point", "coordinates": [1, 2, 300]}', WORLD).items[0]?.place).toEqual({
      type: "Point",
      coordinates: [1, 2],
    });
  });

  it("keeps the good features of a collection and names the bad ones", () => {
    const good = { type: "Feature", properties: null, geometry: { type: "Point", coordinates: [1, 2] } };
    const bad = { type: "Feature", properties: {}, geometry: { type: "Polygon", coordinates: [[[0, 0], [1, 1], [0, 0]]] } };
    const line = { type: "Feature", properties: {}, geometry: { type: "LineString", coordinates: [] } };
    const { items, problems } = readGeoJson(JSON.stringify({ type: "FeatureCollection", features: [good, bad, line] }), WORLD);
    expect(items).toHaveLength(1);
    expect(problems).toEqual([
      "features[1].geometry.coordinates[0]: a ring needs at least four positions, got 3",
      'features[2].geometry.type: need Polygon, MultiPolygon or Point, got "LineString"',
    ]);
  });

  it.each([
    ['{"type": "Point", "coordinates": [200, 2]}', "Point.coordinates: (200, 2) is no longitude and latitude"],
    ['{"type": "Point", "coordinates": [1, "2"]}', "Point.coordinates: need two finite numbers"],
    ['{"type": "Polygon", "coordinates": [[[0,0],[1,0],[1,1],[0,1]]]}', "Polygon.coordinates[0]: the ring is not closed"],
    ['{"type": "Topology"}', "type: need a geometry, Feature or FeatureCollection"],
    ['{"type": "FeatureCollection", "features": []}', "features: the collection is empty"],
    ['{"type": ', "the text is not JSON"],
    ["[1, 2]", "need a GeoJSON object"],
    ['{"type": "Point", "coordinates": [1, 2], "crs": {"properties": {"name": "EPSG:32632"}}}', "crs: need longitude"],
  ])("refuses %s", (text, message) => {
    expect(messageOf(() => readGeoJson(text, WORLD))).toContain(message);
  });

  it("takes any coordinates on a plain map", () => {
    expect(readGeoJson('{"type": "Point", "coordinates": [2000, 2]}', PLAIN).items).toHaveLength(1);
  });
});

describe("WKT", () => {
  it.each([
    ["POINT (1 2)", { type: "Point", coordinates: [1, 2] }],
    ["point z(1 2 3)", { type: "Point", coordinates: [1, 2] }],
    ["SRID=4326;POLYGON((0 0,4 0,4 4,0 0))", { type: "Polygon", coordinates: TRIANGLE }],
    ["MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)))", { type: "MultiPolygon", coordinates: [TRIANGLE] }],
    ["1.5, -2e1", { type: "Point", coordinates: [1.5, -20] }],
    ["0 0\n4 0\n4 4", { type: "Polygon", coordinates: TRIANGLE }],
    ["0 0; 4 0; 4 4; 0 0", { type: "Polygon", coordinates: TRIANGLE }],
  ])("reads %s", (text, place) => {
    expect(readWkt(text, WORLD)).toEqual(place);
  });

  it("reads boxes with and without a name", () => {
    expect(readWkt("BBOX(0, 1, 2, 3)", WORLD)).toEqual(readWkt("0, 1, 2, 3", WORLD));
  });

  it.each([
    ["POLYGON ((0 0, 4 0, 4 4))", "line 1, column 10: a ring needs at least four positions, got 3"],
    ["POLYGON ((0 0, 4 0,\n4 4, 1 1))", "line 1, column 10: the ring is not closed"],
    ["POLYGON ((0 0, 4 x, 4 4, 0 0))", "line 1, column 16: expected x and y, got 1 numbers"],
    ["POINT (1 2", "line 1, column 11: expected ); the text ends here"],
    ["POINT (1 2) x", 'line 1, column 13: expected the end, got "x"'],
    ["LINESTRING (0 0, 1 1)", "line 1, column 1: LINESTRING is not supported"],
    ["CIRCLE (0 0, 1)", "line 1, column 1: expected POINT, POLYGON"],
    ["POLYGON EMPTY", "line 1, column 9: an empty geometry"],
    ["SRID=3857;POINT(1 2)", "line 1, column 6: SRID 3857 is not supported"],
    ["BBOX(3, 0, 1, 1)", "BBOX: need xmin < xmax"],
    ["POINT (200 2)", "line 1, column 8: (200, 2) is no longitude"],
    ["0 0\n1 1", "a polygon needs at least three corners"],
    ["0 0\n1 1 1\n2 2", "line 2: need two numbers"],
    ["", "type coordinates, WKT"],
  ])("refuses %j", (text, message) => {
    expect(messageOf(() => readWkt(text, WORLD))).toContain(message);
  });
});

function alert(info: string, head = ""): string {
  return `<?xml version="1.0"?><alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
    <identifier>43b0</identifier><sender>met@example.org</sender><sent>2024-05-01T12:00:00+02:00</sent>
    <status>Actual</status><msgType>Alert</msgType><scope>Public</scope>${head}${info}</alert>`;
}
const HAIL = `<category>Met</category><event>Hail</event><urgency>Immediate</urgency><severity>Severe</severity>
  <certainty>Observed</certainty><eventCode><valueName>SAME</valueName><value>SVR</value></eventCode>`;

describe("CAP", () => {
  it("reads polygons with the latitude first, and attributes", () => {
    const { items, problems } = readCap(
      alert(`<info>${HAIL}<area><areaDesc>Siena</areaDesc><polygon>43.3,11.3 43.3,11.4 43.4,11.4 43.3,11.3</polygon></area></info>`),
    );
    expect(problems).toEqual([]);
    expect(items[0]?.place).toEqual({
      type: "Polygon",
      coordinates: [
        [
          [11.3, 43.3],
          [11.4, 43.3],
          [11.4, 43.4],
          [11.3, 43.3],
        ],
      ],
    });
    expect(items[0]?.attribute).toBe("area");
    expect(items[0]?.attributes).toMatchObject({
      event: "Hail",
      severity: "Severe",
      areaDesc: "Siena",
      language: "en-US",
      "eventCode.SAME": "SVR",
      sender: "met@example.org",
    });
  });

  it("reads circles as polygons that contain them", () => {
    const { items } = readCap(alert(`<info>${HAIL}<area><areaDesc>x</areaDesc><circle>43.3,11.3 10</circle></area></info>`));
    const place = items[0]?.place;
    if (place?.type !== "Polygon") throw new Error("no polygon");
    const [ring = []] = place.coordinates;
    expect(ring).toHaveLength(33);
    const north = Math.max(...ring.map((position) => position[1] ?? 0));
    expect((north - 43.3) * 111.19).toBeCloseTo(10.05, 1);
  });

  it("unites areas, and names those that are bad", () => {
    const { items, problems } = readCap(
      alert(`<info>${HAIL}
        <area><areaDesc>a</areaDesc><polygon>0,0 0,2 2,2 2,0 0,0</polygon></area>
        <area><areaDesc>b</areaDesc><polygon>0,1 0,3 2,3 2,1 0,1</polygon></area>
        <area><areaDesc>c</areaDesc><polygon>200,1 0,3 2,3 200,1</polygon><circle>1,2</circle></area>
        <area><areaDesc>d</areaDesc><geocode><valueName>ISTAT</valueName><value>052</value></geocode></area></info>`),
    );
    expect(items[0]?.place).toMatchObject({ type: "Polygon" });
    expect(items[0]?.attributes["geocode.ISTAT"]).toBe("052");
    expect(problems).toEqual([
      "info, area 3, polygon 1, point 1: latitude 200, longitude 1 is out of range; CAP has the latitude first",
      'info, area 3, circle 1: need "latitude,longitude radius", got "1,2"',
      "info, area 4: it has no polygon and no circle; zones by code are known to the server alone",
    ]);
  });

  it("reads every info block", () => {
    const { items } = readCap(alert(`<info>${HAIL}</info><info><language>it</language>${HAIL}</info>`));
    expect(items.map((item) => item.attributes["language"])).toEqual(["en-US", "it"]);
  });

  it.each([
    ["<alert>", "the text is not XML"],
    ["<feed/>", "feed: need the element alert"],
    ["<alert/>", "alert: it lacks identifier, sender, sent"],
    ['<!DOCTYPE a [<!ENTITY x "y">]><alert/>', "document type declarations are not allowed"],
  ])("refuses %s", (text, message) => {
    expect(messageOf(() => readCap(text))).toContain(message);
  });

  it("keeps markup in text as text", () => {
    const { items } = readCap(alert(`<info>${HAIL}<headline>&lt;img src=x onerror=alert(1)&gt;</headline></info>`));
    expect(items[0]?.name).toBe("<img src=x onerror=alert(1)>");
  });
});

describe("files", () => {
  it("tells formats apart by how they begin", () => {
    expect(readText("a.txt", " POINT (1 2)", WORLD).items[0]?.place?.type).toBe("Point");
    expect(readText("a.json", '\uFEFF{"type": "Point", "coordinates": [1, 2]}', WORLD).items).toHaveLength(1);
    expect(readText("a.xml", alert(`<info>${HAIL}</info>`), WORLD).items).toHaveLength(1);
  });

  it("names the file in errors", () => {
    expect(messageOf(() => readText("zones.geojson", "{", WORLD))).toMatch(/^zones.geojson: the text is not JSON/);
    expect(messageOf(() => readText("empty.wkt", " \n", WORLD))).toBe("empty.wkt: the file is empty");
  });

  it("reads a File", async () => {
    const { items } = await readFile(new File(["POINT (1 2)"], "a.wkt"), WORLD);
    expect(items).toHaveLength(1);
  });
});

describe("circles", () => {
  it("contain the circle that they stand for", () => {
    const { coordinates } = circleInPlane([5, 5], 2, 8);
    const corner = coordinates[0]?.[0] ?? [];
    expect(Math.hypot((corner[0] ?? 0) - 5, (corner[1] ?? 0) - 5)).toBeCloseTo(2 / Math.cos(Math.PI / 8));
  });

  it("refuse what cannot be drawn", () => {
    expect(messageOf(() => circleInDegrees([0, 84], 500))).toContain("too near a pole");
    expect(messageOf(() => circleInDegrees([179.9, 0], 500))).toContain("antimeridian");
    expect(messageOf(() => circleInDegrees([0, 0], -1))).toContain("need a radius above 0 km");
  });
});
