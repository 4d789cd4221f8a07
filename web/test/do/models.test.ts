import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../../src/api/client.ts";
import type { FilterAnswer, FilterRequest, Subscription, SubscriptionRequest, TrialAnswer, TrialRequest } from "../../src/api/types.ts";
import { boxPolygon } from "../../src/do/filter/json.ts";
import { newCondition, newSpatial, type FilterForm } from "../../src/do/filter/model.ts";
import { attributeNames, regionAttribute, shapesOf } from "../../src/do/messages.ts";
import { layoutNetwork, linkSentence, type NetworkLink } from "../../src/do/network/layout.ts";
import { messageText, PublishModel } from "../../src/do/publish/publish-model.ts";
import { draftFeatures, trialFeatures } from "../../src/do/subscribe/features.ts";
import { FilterEditor } from "../../src/do/subscribe/filter-editor.ts";
import { SubscriptionModel } from "../../src/do/subscribe/subscription-model.ts";
import { centreOf, trackedObjects, trailFeatures } from "../../src/do/tracks/objects.ts";
import { OwnFeatures } from "../../src/do/ui/own-features.ts";
import { problemOf } from "../../src/do/ui/problems.ts";
import { drawnPlace } from "../../src/do/draw/drawing.ts";
import { FakeMap, message } from "../panels/context.ts";

const SQUARE = boxPolygon(0, 0, 4, 4);
const GOOD: FilterForm = { join: "and", terms: [newSpatial("geometry", SQUARE)] };

function answer(json: FilterAnswer["json"], change: Partial<FilterAnswer> = {}): FilterAnswer {
  return { valid: true, text: "", json, shapes: [], conditions: "", bounds: null, filters: [], problem: null, ...change };
}

/** A server that reads `severity >= 3` and refuses all else. */
function reader(request: FilterRequest): Promise<FilterAnswer> {
  const text = "text" in request ? request.text : "severity >= 3";
  if (text === "severity >= 3") return Promise.resolve(answer({ op: ">=", args: [{ property: "severity" }, 3] }, { text }));
  if (text === "a = $b") return Promise.resolve(answer({ op: "=", args: [{ property: "a" }, { column: "b" }] }));
  if (text.includes("POLYGON")) return Promise.resolve(answer({ op: "s_intersects", args: [{ property: "geometry" }, { type: "Point", coordinates: [0, 0] }] }));
  return Promise.resolve(answer(null, { valid: false, problem: { detail: "line 1, column 3: unexpected end", line: 1, column: 3 } }));
}

describe("the filter editor", () => {
  it("writes the text of a changed form, and keeps the form as it is", async () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    editor.setForm(GOOD);
    expect(editor.text.value).toBe("S_INTERSECTS(geometry, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))");
    await editor.check();
    expect(editor.form.value).toBe(GOOD);
  });

  it("fills the form from changed text", async () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    editor.setText("severity >= 3");
    await vi.waitFor(() => { expect(editor.form.value?.terms[0]).toMatchObject({ attribute: "severity", values: ["3"] }); });
    expect(editor.text.value).toBe("severity >= 3");
  });

  it("keeps text that the form cannot show, and says why", async () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    await editor.load("a = $b");
    expect(editor.form.value).toBeNull();
    expect(editor.reason.value).toContain("the column $b");
    expect(editor.text.value).toBe("a = $b");
    expect(await editor.isReady()).toBe(true);
  });

  it("is ready with text that was typed a moment ago, whatever the form before it lacks", async () => {
    const editor = new FilterEditor({ filter: reader }, 60_000);
    expect(await editor.isReady()).toBe(false); // the form that is offered has no region
    editor.setText("severity >= 3");
    expect(await editor.isReady()).toBe(true);
    expect(editor.form.value?.terms[0]).toMatchObject({ attribute: "severity", values: ["3"] });
  });

  it("names the place of a fault, and keeps the form before it", async () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    editor.setForm(GOOD);
    editor.setText("a >");
    await vi.waitFor(() => { expect(editor.problem.value).toMatchObject({ line: 1, column: 3 }); });
    expect(editor.form.value).toBe(GOOD);
    expect(await editor.isReady()).toBe(false);
  });

  it("forgets answers to older text", async () => {
    const waiting: ((answer: FilterAnswer) => void)[] = [];
    const editor = new FilterEditor({ filter: () => new Promise((resolve) => { waiting.push(resolve); }) }, 0);
    const first = editor.check(true);
    const second = editor.check(true);
    waiting[1]?.(answer({ op: "=", args: [{ property: "new" }, 1] }));
    await second;
    waiting[0]?.(answer({ op: "=", args: [{ property: "old" }, 1] }));
    await first;
    expect(editor.form.value?.terms[0]).toMatchObject({ attribute: "new" });
  });

  it("puts dropped regions into conditions that have none, then into new ones", () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    editor.setPlace(SQUARE);
    editor.setPlace({ type: "Point", coordinates: [1, 2] });
    expect(editor.text.value).toBe(
      "S_INTERSECTS(geometry, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))) AND S_INTERSECTS(geometry, POINT (1 2))",
    );
    editor.dispose();
  });

  it("suggests an attribute until the form is touched", () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    editor.suggestAttribute("position");
    expect(editor.text.value).toBe("S_INTERSECTS(position, ?)");
    editor.suggestAttribute("area");
    expect(editor.form.value?.terms[0]?.kind === "spatial" && editor.form.value.terms[0].attribute).toBe("area");
    editor.setForm(GOOD);
    editor.suggestAttribute("position");
    expect(editor.form.value).toBe(GOOD);
    editor.dispose();
  });

  it("reads a filter in JSON", async () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    await editor.load({ op: ">=", args: [{ property: "severity" }, 3] });
    expect(editor.text.value).toBe("severity >= 3");
  });
});

const STORED: Subscription = {
  key: "depot",
  subscriber: "eve",
  filter: "severity >= 3",
  on: ["enter", { dwell: "5m" }],
  applies_from: 1,
  created: "2024-05-01T12:00:00Z",
  expires: "2030-01-01T00:00:00Z",
  paused: true,
  track: "bus",
  exit_buffer: 20,
  late: "arrival",
};
const TRIAL: TrialAnswer = {
  count: 1,
  examined: 5,
  from: 1,
  to: 5,
  since: null,
  complete: true,
  sample: [{ sequence: 4, at: "2024-05-01T12:00:00Z", message: { type: "Feature", geometry: SQUARE, properties: {} } }],
};

function subscriptions(known: Subscription[] = []) {
  const putSubscription = vi.fn((key: string, request: SubscriptionRequest, isNew: boolean) => {
    if (isNew && known.some((one) => one.key === key)) return Promise.reject(new ApiError("the key is in use", 412));
    return Promise.resolve({ ...STORED, ...request, key } as Subscription);
  });
  const dryRun = vi.fn((_: TrialRequest) => Promise.resolve(TRIAL));
  const storedSubscription = vi.fn((key: string) => {
    const found = known.find((one) => one.key === key);
    return found === undefined ? Promise.reject(new ApiError("no such key", 404)) : Promise.resolve(found);
  });
  const model = new SubscriptionModel({ filter: reader, putSubscription, dryRun, storedSubscription }, 0);
  return { model, putSubscription, dryRun };
}

describe("a subscription", () => {
  it("asks for key and subscriber first", async () => {
    const { model, putSubscription } = subscriptions();
    expect(await model.subscribe()).toBeNull();
    expect(model.problem.value?.field).toBe("key");
    model.change({ key: "a" });
    await model.subscribe();
    expect(model.problem.value?.field).toBe("subscriber");
    expect(putSubscription).not.toHaveBeenCalled();
  });

  it("is not sent while the form lacks something", async () => {
    const { model, putSubscription } = subscriptions();
    model.change({ key: "a", subscriber: "ann" });
    expect(await model.subscribe()).toBeNull();
    expect(model.filter.showsMissing.value).toBe(true);
    expect(putSubscription).not.toHaveBeenCalled();
  });

  it("is sent as the text that was shown", async () => {
    const { model, putSubscription } = subscriptions();
    model.change({ key: " floods ", subscriber: "ann", ttl: "60" });
    model.filter.setForm(GOOD);
    expect(await model.subscribe()).toBe("floods");
    expect(putSubscription).toHaveBeenCalledWith("floods", { subscriber: "ann", filter: model.filter.text.value, ttl: 60 }, true);
  });

  it("asks before it replaces another one", async () => {
    const { model, putSubscription } = subscriptions([STORED]);
    model.change({ key: "depot", subscriber: "ann" });
    await model.filter.load("severity >= 3");
    expect(await model.subscribe()).toBeNull();
    expect(model.inUse.value).toBe("depot");
    expect(await model.subscribe(true)).toBe("depot");
    expect(model.inUse.value).toBeNull();
    expect(putSubscription.mock.calls.map(([, , isNew]) => isNew)).toEqual([true, false]);
  });

  it("keeps what the form does not show when it is changed", async () => {
    const { model, putSubscription } = subscriptions([STORED]);
    await model.edit("depot");
    expect(model.fields.value).toMatchObject({ hears: "track", track: "bus", kinds: ["enter"], dwell: "5m", exitBuffer: "20" });
    expect(await model.subscribe()).toBe("depot");
    expect(putSubscription).toHaveBeenCalledWith("depot", {
      subscriber: "eve",
      filter: "severity >= 3",
      track: "bus",
      on: ["enter", { dwell: "5m" }],
      exit_buffer: 20,
      expires: "2030-01-01T00:00:00Z",
      paused: true,
      late: "arrival",
    }, false);
  });

  it("needs an attribute and an event to track objects", async () => {
    const { model } = subscriptions();
    model.change({ key: "a", subscriber: "ann", hears: "track" });
    await model.subscribe();
    expect(model.problem.value?.field).toBe("track");
    model.change({ track: "bus", kinds: [] });
    await model.subscribe();
    expect(model.problem.value?.field).toBe("on");
  });

  it("tries the filter over the last hour", async () => {
    const { model, dryRun } = subscriptions();
    await model.filter.load("severity >= 3");
    const now = Date.parse("2024-05-01T12:00:00Z");
    expect(await model.tryFilter(now)).toBe(TRIAL);
    expect(dryRun).toHaveBeenCalledWith({ filter: "severity >= 3", since: "2024-05-01T11:00:00.000Z", limit: 1000 });
    expect(trialFeatures(TRIAL)).toMatchObject([{ geometry: SQUARE, kind: "match" }]);
  });

  it("shows a problem of the server beside its field", async () => {
    const { model, putSubscription } = subscriptions();
    putSubscription.mockRejectedValueOnce(new ApiError("Expected `float` > 0.0 - at `$.ttl`", 400, null));
    model.change({ key: "a", subscriber: "ann" });
    await model.filter.load("severity >= 3");
    expect(await model.subscribe()).toBeNull();
    expect(model.problem.value).toEqual({ field: "ttl", message: "Expected `float` > 0.0 - at `$.ttl`" });
    expect(model.busy.value).toBeNull();
  });
});

describe("problems", () => {
  const problem = (type: string, change = {}) => ({ type, title: "", status: 400, detail: "", ...change });

  it("belong to the field that they name", () => {
    const fields = ["key", "filter", "subscriber"] as const;
    expect(problemOf(new ApiError("bad", 400, problem("/problems/bad-filter")), fields).field).toBe("filter");
    expect(problemOf(new ApiError("bad", 400, problem("/problems/bad-request", { path: "/args" })), fields).field).toBe("filter");
    expect(problemOf(new ApiError("key: 1 to 200 characters", 400, problem("/problems/bad-request")), fields).field).toBe("key");
    expect(problemOf(new ApiError("the server is busy", 503), fields).field).toBeNull();
    expect(() => problemOf(new TypeError("a bug"), fields)).toThrow("a bug");
  });
});

describe("a message", () => {
  it("keeps the digits of numbers, and JSON as it is", () => {
    const rows = [
      { name: "n", type: "number" as const, value: " 9007199254740993 " },
      { name: "b", type: "boolean" as const, value: "true" },
      { name: "w", type: "json" as const, value: '{"speed": 12}' },
      { name: "t", type: "text" as const, value: '"<b>' },
      { name: "", type: "text" as const, value: "" },
    ];
    expect(messageText(rows, "area", { type: "Point", coordinates: [1, 2] }).text).toBe(
      '{"n": 9007199254740993, "b": true, "w": {"speed": 12}, "t": "\\"<b>", "area": {"type":"Point","coordinates":[1,2]}}',
    );
  });

  it.each([
    [[{ name: "n", type: "number" as const, value: "3 m" }], "rows"],
    [[{ name: "", type: "text" as const, value: "x" }], "rows"],
    [[{ name: "j", type: "json" as const, value: "{" }], "rows"],
    [[{ name: "a", type: "text" as const, value: "" }, { name: "a", type: "text" as const, value: "" }], "rows"],
    [[], "place"],
  ])("is refused: %j", (rows, field) => {
    expect(messageText(rows, "geometry", null).problem?.field).toBe(field);
  });

  it("is refused if an attribute has the name of the region's", () => {
    expect(messageText([{ name: "area", type: "text", value: "x" }], "area", SQUARE).problem?.field).toBe("attribute");
  });

  it("comes from a file, which can be published as it is", async () => {
    const publishBody = vi.fn(() => Promise.resolve({ sequence: 8 }));
    const model = new PublishModel({ publishBody });
    const item = { name: "Hail", attributes: { event: "Hail", severity: 3, wind: { speed: 1 } }, attribute: "area", place: SQUARE };
    model.take({ items: [item], problems: [] }, "a.xml", " <alert/>");
    expect(model.rows.value.map(({ type }) => type)).toEqual(["text", "number", "json"]);
    expect(model.attribute.value).toBe("area");
    await model.publishFile();
    expect(publishBody).toHaveBeenCalledWith(" <alert/>", "application/cap+xml");
    expect(await model.publish()).toBe(8);
    expect(publishBody).toHaveBeenLastCalledWith(expect.stringContaining('"wind": {"speed":1}'), "application/json");
  });

  it("is not sent while what was typed as its place is none", async () => {
    const publishBody = vi.fn(() => Promise.resolve({ sequence: 8 }));
    const model = new PublishModel({ publishBody });
    model.rows.value = [{ name: "severity", type: "number", value: "3" }];
    model.placeFault.value = "POLYGON ((0 0: expected a number";
    expect(await model.publish()).toBeNull();
    expect(model.problem.value?.field).toBe("place");
    model.placeFault.value = null;
    expect(await model.publish()).toBe(8);
  });

  it("takes a region alone from a file without attributes", () => {
    const model = new PublishModel({ publishBody: vi.fn() });
    model.take({ items: [{ name: "", attributes: {}, attribute: "geometry", place: SQUARE }], problems: [] }, "a.wkt", "POLYGON");
    expect(model.file.value).toBeNull();
    expect(model.place.value).toBe(SQUARE);
  });
});

describe("what the map shows", () => {
  it("draws the regions of the form", () => {
    const editor = new FilterEditor({ filter: reader }, 0);
    editor.setForm({ join: "and", terms: [newSpatial("a", SQUARE), newSpatial("b", null), { kind: "group", negated: false, join: "or", leaves: [newCondition("x"), newSpatial("c", SQUARE)] }] });
    expect(draftFeatures(editor).map(({ id }) => id)).toEqual(["0", "2.1"]);
    editor.dispose();
  });

  it("finds regions of messages however deep", () => {
    expect(shapesOf({ a: { b: SQUARE }, c: [SQUARE], d: { type: "Point", coordinates: [1, 2] } })).toHaveLength(2);
    const place = (attribute: string) => message(1, { shapes: [{ attribute, geometry: SQUARE }] });
    expect(regionAttribute([place("area"), place("position"), place("position")])).toBe("position");
    expect(regionAttribute([])).toBe("geometry");
    expect(attributeNames([message(1), message(2, { attributes: { severity: 1 } })])).toEqual(["geometry", "severity", "event"]);
  });

  it("removes no features but its own", () => {
    const map = new FakeMap();
    const [one, other] = [new OwnFeatures(map.view(), "answer"), new OwnFeatures(map.view(), "answer")];
    one.set([{ id: "a", geometry: SQUARE, kind: "match" }]);
    other.set([{ id: "b", geometry: SQUARE, kind: "trail" }]);
    one.set([]);
    expect(map.kinds("answer")).toEqual(["trail"]);
  });

  it("takes drawings of polygons and points, closed", () => {
    const round = (position: GeoJSON.Position) => position.map(Math.round);
    expect(drawnPlace({ type: "Polygon", coordinates: [[[0.1, 0], [4, 0], [4, 4], [0.4, 0]]] }, round)).toEqual({
      type: "Polygon",
      coordinates: [[[0, 0], [4, 0], [4, 4], [0, 0]]],
    });
    expect(drawnPlace({ type: "LineString", coordinates: [] }, round)).toBeNull();
  });
});

describe("tracked objects", () => {
  const fix = (sequence: number, bus: string, x: number) =>
    message(sequence, { attributes: { bus }, shapes: [{ attribute: "geometry", geometry: { type: "Point", coordinates: [x, 0] } }] });
  const enter = { key: "depot", id: "b7", kind: "enter" as const, before: null, after: "inside" as const, time: "2024-05-01T12:00:00Z" };

  it("have a trail and what they are inside of", () => {
    const objects = trackedObjects(
      [fix(1, "b7", 0), fix(2, "b10", 5), fix(3, "b7", 1)],
      ["bus"],
      [{ attribute: "bus", id: "b10", key: "port", since: "2024-05-01T11:00:00Z" }],
      [enter],
      () => "bus",
    );
    expect(objects.map(({ id }) => id)).toEqual(["b7", "b10"]);
    expect(objects[0]).toMatchObject({ trail: [[0, 0], [1, 0]], at: [1, 0], sequence: 3, inside: [{ key: "depot" }] });
    expect(objects[1]).toMatchObject({ inside: [{ key: "port" }] });
    expect(trailFeatures(objects[0])).toHaveLength(1);
    expect(trailFeatures(objects[1])).toEqual([]);
  });

  it("leave by an exit that came after the list", () => {
    const inside = [{ attribute: "bus", id: "b7", key: "depot", since: "" }];
    const [object] = trackedObjects([], ["bus"], inside, [{ ...enter, kind: "exit" }], () => "bus");
    expect(object).toMatchObject({ id: "b7", at: null, inside: [] });
  });

  it("are in the middle of a region", () => {
    expect(centreOf(SQUARE)).toEqual([2, 2]);
    expect(centreOf(undefined)).toBeNull();
  });
});

describe("the network", () => {
  const link = (neighbour: string, behind: string[]): NetworkLink => ({
    neighbour,
    phase: "up",
    forwards: 1200,
    suppresses: 3,
    takes: 5,
    unacknowledged: 0,
    unacknowledged_bytes: 0,
    dropped: 0,
    behind,
  });

  it("has this broker in the middle, and brokers behind a neighbour beyond it", () => {
    const { nodes, edges } = layoutNetwork("me", [link("north", ["north", "far", "farther"]), link("south", [])]);
    expect(nodes.map(({ name, role }) => `${name} ${role}`)).toEqual(["me self", "north neighbour", "far behind", "farther behind", "south neighbour"]);
    expect(edges.filter((edge) => edge.link === null)).toHaveLength(2);
    expect(new Set(nodes.map(({ x, y }) => `${Math.round(x)} ${Math.round(y)}`)).size).toBe(nodes.length);
  });

  it("says in words what a link does", () => {
    expect(linkSentence("me", link("north", []))).toBe("me and north: up; 1,200 subscriptions forwarded, 3 suppressed, 5 taken; nothing waits.");
  });
});
