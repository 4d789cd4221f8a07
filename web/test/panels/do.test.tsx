import { cleanup, render, screen, waitFor, within } from "@testing-library/preact";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../../src/api/client.ts";
import type { FilterAnswer, FilterRequest, NetworkView } from "../../src/api/types.ts";
import { DoPanel, NetworkPanel, TracksPanel } from "../../src/do/index.tsx";
import { message, page, subscription } from "./context.ts";

afterEach(cleanup);

function filter(request: FilterRequest): Promise<FilterAnswer> {
  const text = "text" in request ? request.text : "";
  const isGood = text.startsWith("S_") || text.startsWith("severity");
  return Promise.resolve({
    valid: isGood,
    text: isGood ? text : null,
    json: text.startsWith("severity") ? { op: ">=", args: [{ property: "severity" }, 3] } : isGood ? { op: "s_within", args: [{ property: "g" }, { type: "Point", coordinates: [1, 2] }] } : null,
    shapes: [],
    conditions: "",
    bounds: null,
    filters: [],
    problem: isGood ? null : { detail: "line 1, column 5: unexpected end of text", line: 1, column: 5 },
  });
}

function open(settings = {}) {
  const putSubscription = vi.fn((key: string) => Promise.resolve({ key }));
  const dryRun = vi.fn(() =>
    Promise.resolve({
      count: 2,
      examined: 10,
      from: 1,
      to: 10,
      since: null,
      complete: true,
      sample: [{ sequence: 4, at: "2024-05-01T12:00:00Z", message: { geometry: { type: "Point", coordinates: [1, 2] } } }],
    }),
  );
  const publishBody = vi.fn(() => Promise.resolve({ sequence: 12 }));
  const made = page({ filter: vi.fn(filter), putSubscription, dryRun, publishBody }, settings);
  made.context.store.panel.value = "do";
  render(<DoPanel context={made.context} />);
  return { ...made, putSubscription, dryRun, publishBody };
}

function cql(): HTMLTextAreaElement {
  return screen.getByLabelText<HTMLTextAreaElement>("Filter as CQL2");
}

/** Choose a file as a person does; a drop takes the same way in the page, and the browser test drops one. */
function choose(file: File): Promise<void> {
  return userEvent.upload(screen.getByLabelText(/Drop a GeoJSON, WKT or CAP file/), file);
}

describe("subscribing by keyboard", () => {
  it("goes from typed coordinates to a subscription", async () => {
    const { putSubscription, context, map, announced } = open();
    const user = userEvent.setup();
    await user.type(screen.getByLabelText("WKT or coordinates"), "BBOX(0, 0, 4, 4){Control>}{Enter}{/Control}");
    await waitFor(() => { expect(cql().value).toBe("S_INTERSECTS(geometry, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))"); });
    expect(map.kinds("draft")).toEqual(["draft"]);
    await user.selectOptions(screen.getByLabelText("It"), "lies within it");
    expect(cql().value).toMatch(/^S_WITHIN\(geometry, /);
    await user.type(screen.getByLabelText("Key"), "zone");
    await user.type(screen.getByLabelText("Subscriber"), "ann{Enter}");
    await waitFor(() => {
      expect(putSubscription).toHaveBeenCalledWith("zone", { subscriber: "ann", filter: "S_WITHIN(geometry, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))" }, true);
    });
    await waitFor(() => { expect(context.store.selection.value).toEqual({ kind: "subscription", key: "zone" }); });
    expect(announced).toContain("Subscribed: zone.");
  });

  it("adds conditions and writes them into the text", async () => {
    open();
    const user = userEvent.setup();
    await user.click(screen.getByRole("button", { name: "Add a condition" }));
    const condition = within(screen.getByRole("group", { name: "Condition 2" }));
    await user.type(condition.getByLabelText("Attribute"), "kind");
    await user.selectOptions(condition.getByLabelText("Operator"), "is one of");
    await user.type(condition.getByLabelText("Value 1"), "flood");
    await user.click(condition.getByRole("button", { name: "Add a value" }));
    await user.type(condition.getByLabelText("Value 2"), "it's");
    expect(cql().value).toContain("AND kind IN ('flood', 'it''s')");
    await user.click(condition.getByLabelText("Negate (NOT)"));
    expect(cql().value).toContain("kind NOT IN");
    await user.click(screen.getByRole("button", { name: "Remove condition 2" }));
    expect(cql().value).not.toContain("kind");
  });

  it("edits back from text", async () => {
    open();
    await userEvent.clear(cql());
    await userEvent.type(cql(), "severity >= 3");
    expect(await screen.findByRole("group", { name: "Condition 1" })).toBeTruthy();
    expect(screen.getByLabelText<HTMLInputElement>("Value").value).toBe("3");
  });

  it("shows the fault of a text at its place", async () => {
    open();
    await userEvent.clear(cql());
    await userEvent.type(cql(), "bad >");
    expect(await screen.findByText("line 1, column 5: unexpected end of text")).toBeTruthy();
    expect(cql().getAttribute("aria-invalid")).toBe("true");
    expect(document.querySelector(".fault-place")?.textContent).toBe("bad >\n    ^");
  });

  it("says beside the fields what is missing", async () => {
    const { putSubscription } = open();
    await userEvent.click(screen.getByRole("button", { name: "Subscribe" }));
    expect(await screen.findByText("Give the subscription a key.")).toBeTruthy();
    expect(screen.getByText("Draw, drop or type a region.")).toBeTruthy();
    expect(putSubscription).not.toHaveBeenCalled();
  });

  it("tries the filter and shows what it found on the map", async () => {
    const { map, context } = open();
    await userEvent.type(screen.getByLabelText("WKT or coordinates"), "1 2{Control>}{Enter}{/Control}");
    await userEvent.click(screen.getByRole("button", { name: "Dry run over the last hour" }));
    expect(await screen.findByText("2 messages of 10 would have been told.")).toBeTruthy();
    await waitFor(() => { expect(map.kinds("answer")).toEqual(["match"]); });
    await userEvent.click(screen.getByRole("button", { name: /message 4/ }));
    expect(context.store.selection.value).toEqual({ kind: "message", sequence: 4 });
    await waitFor(() => { expect(map.kinds("answer")).toEqual([]); });
  });
});

describe("publishing", () => {
  it("sends typed attributes and a region", async () => {
    const { publishBody, context } = open();
    const user = userEvent.setup();
    await user.click(screen.getByRole("button", { name: "Message" }));
    await user.type(screen.getByLabelText("WKT or coordinates"), "1 2{Control>}{Enter}{/Control}");
    const row = within(screen.getByRole("group", { name: "Attribute 1" }));
    await user.type(row.getByLabelText("Name"), "depth");
    await user.selectOptions(row.getByLabelText("Type"), "number");
    await user.type(row.getByLabelText("Value"), "4{Enter}");
    await waitFor(() => {
      expect(publishBody).toHaveBeenCalledWith('{"depth": 4, "geometry": {"type":"Point","coordinates":[1,2]}}', "application/json");
    });
    await waitFor(() => { expect(context.store.selection.value).toEqual({ kind: "message", sequence: 12 }); });
  });

  it("takes a dropped file", async () => {
    const { publishBody } = open();
    await userEvent.click(screen.getByRole("button", { name: "Message" }));
    const text = '{"type": "Feature", "properties": {"event": "<i>Hail</i>"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}';
    await choose(new File([text], "hail.geojson", { type: "application/geo+json" }));
    expect(await screen.findByText("hail.geojson has 1 message.")).toBeTruthy();
    expect(screen.getByLabelText<HTMLInputElement>("Value").value).toBe("<i>Hail</i>");
    await userEvent.click(screen.getByRole("button", { name: "Publish the file as it is" }));
    expect(publishBody).toHaveBeenCalledWith(text, "application/geo+json");
  });

  it("takes a place while it is typed, and tells on leaving the field that text is none", async () => {
    const { publishBody, map } = open();
    const user = userEvent.setup();
    await user.click(screen.getByRole("button", { name: "Message" }));
    const text = screen.getByLabelText<HTMLTextAreaElement>("WKT or coordinates");
    await user.type(text, "POINT (1 2)");
    expect(map.kinds("draft")).toEqual(["draft"]);
    await user.type(text, " and more");
    expect(text.getAttribute("aria-invalid")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Publish" }));
    expect(text.getAttribute("aria-invalid")).toBe("true");
    expect(text.value).toBe("POINT (1 2) and more");
    expect(map.kinds("draft")).toEqual([]);
    expect(publishBody).not.toHaveBeenCalled();
    await user.click(screen.getByRole("button", { name: "Clear" }));
    expect(screen.getByLabelText<HTMLTextAreaElement>("WKT or coordinates").value).toBe("");
  });

  it("forgets text that is no place when a file brings one", async () => {
    const { publishBody } = open();
    const user = userEvent.setup();
    await user.click(screen.getByRole("button", { name: "Message" }));
    await user.type(screen.getByLabelText("WKT or coordinates"), "POINT (1");
    await user.tab();
    await choose(new File(["POINT (1 2)"], "here.wkt"));
    const text = screen.getByLabelText<HTMLTextAreaElement>("WKT or coordinates");
    await waitFor(() => { expect(text.value).toBe("POINT (1 2)"); });
    expect(text.getAttribute("aria-invalid")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Publish" }));
    expect(publishBody).toHaveBeenCalledWith('{"geometry": {"type":"Point","coordinates":[1,2]}}', "application/json");
  });

  it("leaves a panel open that was opened before the answer came", async () => {
    const { publishBody, context, announced } = open();
    let answer: (published: { sequence: number }) => void = () => undefined;
    publishBody.mockImplementation(() => new Promise((resolve) => { answer = resolve; }));
    const user = userEvent.setup();
    await user.click(screen.getByRole("button", { name: "Message" }));
    await user.type(screen.getByLabelText("WKT or coordinates"), "1 2");
    await user.click(screen.getByRole("button", { name: "Publish" }));
    context.store.panel.value = "messages";
    answer({ sequence: 12 });
    await waitFor(() => { expect(announced).toContain("Published as message 12."); });
    expect(context.store.panel.value).toBe("messages");
    expect(context.store.selection.value).toBeNull();
  });

  it("names what is wrong with a dropped file", async () => {
    open();
    await choose(new File(["POLYGON ((0 0, 1 1))"], "bad.wkt"));
    expect(await screen.findByText("bad.wkt: line 1, column 10: a ring needs at least four positions, got 2")).toBeTruthy();
  });
});

describe("who may do what", () => {
  it("hides everything in read-only mode", () => {
    open({ read_only: true });
    expect(screen.queryByRole("form")).toBeNull();
    expect(screen.getByText(/This map is read-only/)).toBeTruthy();
  });

  it("offers what the scopes of the key allow", () => {
    open({ scopes: ["publish"] });
    expect(screen.getByRole("form", { name: "New message" })).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Subscribe" })).toBeNull();
  });
});

describe("tracked objects", () => {
  it("lists objects, what they are inside of, and what happens", async () => {
    const tracks = vi.fn(() => Promise.resolve({ inside: [{ attribute: "bus", id: "b7", key: "depot", since: "2024-05-01T12:00:00Z" }], count: 1 }));
    const { context, map } = page({ tracks }, { tracks: ["bus"] });
    const { store } = context;
    store.panel.value = "tracks";
    store.subscriptions.value = new Map([["depot", subscription("depot", { track: "bus" })]]);
    store.messages.value = [1, 2].map((x) => message(x, { attributes: { bus: "b7" }, shapes: [{ attribute: "geometry", geometry: { type: "Point", coordinates: [x, 0] } }] }));
    render(<TracksPanel context={context} />);
    expect(await screen.findByText("inside depot")).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: /b7/ }));
    expect(store.selection.value).toEqual({ kind: "track", attribute: "bus", id: "b7" });
    expect(map.kinds("answer")).toEqual(["trail"]);
    store.transitions.value = [{ key: "depot", id: "b7", kind: "exit", before: "inside", after: "disjoint", time: "2024-05-01T12:00:05Z" }];
    expect(await screen.findByRole("button", { name: "b7 left depot" })).toBeTruthy();
    expect(screen.getByText("outside of all")).toBeTruthy();
    store.panel.value = "messages";
    await waitFor(() => { expect(map.kinds("answer")).toEqual([]); });
  });
});

describe("the network", () => {
  const VIEW: NetworkView = {
    name: "south",
    tenants: [
      {
        tenant: "default",
        brokers: ["south", "north", "far"],
        links: [{ neighbour: "north", phase: "up", forwards: 12, suppresses: 3, takes: 5, unacknowledged: 2, unacknowledged_bytes: 10, dropped: 0, behind: ["north", "far"] }],
        waits_for: [],
      },
    ],
    refused: [{ tenant: "default", key: "<b>k</b>", reason: "another reference system" }],
    calls: [],
  };

  it("is a graph with a label, and a table", async () => {
    const { context } = page({ network: vi.fn(() => Promise.resolve(VIEW)) });
    context.store.panel.value = "network";
    render(<NetworkPanel context={context} />);
    expect(await screen.findByRole("img", { name: /south and north: up; 12 subscriptions forwarded, 3 suppressed/ })).toBeTruthy();
    const cells = within(screen.getByRole("table")).getAllByRole("cell").map((cell) => cell.textContent);
    expect(cells).toEqual(["up", "12", "3", "5", "2", "0", "north, far"]);
    expect(screen.getByText("<b>k</b>")).toBeTruthy();
  });

  it("says which key is needed", async () => {
    const { context } = page({ network: vi.fn(() => Promise.reject(new ApiError("forbidden", 403))) });
    context.store.panel.value = "network";
    render(<NetworkPanel context={context} />);
    expect((await screen.findByRole("alert")).textContent).toContain("scope admin");
  });
});
