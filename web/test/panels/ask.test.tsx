import { cleanup, render, screen, waitFor, within } from "@testing-library/preact";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../../src/api/client.ts";
import type { ExplainedConstraint, MapExplanation, SubscriptionDetail } from "../../src/api/types.ts";
import { AskPanel } from "../../src/ask/AskPanel.tsx";
import { findSubscriptions } from "../../src/ask/parts/KeySearch.tsx";
import { firstSpatial, relationFeatures } from "../../src/ask/WhyView.tsx";
import { boxPolygon } from "../../src/do/filter/json.ts";
import { message, page, subscription } from "./context.ts";

afterEach(cleanup);

const AREA: ExplainedConstraint = {
  attribute: "geometry",
  asked: "S_WITHIN(geometry, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))",
  value: boxPolygon(2, 2, 6, 6),
  truth: false,
  relation: "overlaps",
  reason: "geometry overlaps it",
  spatial: {
    operator: "S_WITHIN",
    negated: false,
    relations: ["equals", "inside", "covered-by"],
    asked: boxPolygon(0, 0, 4, 4),
    found: boxPolygon(2, 2, 6, 6),
  },
};
const SEVERITY: ExplainedConstraint = {
  attribute: "severity",
  asked: "severity >= 3",
  value: 4,
  truth: true,
  relation: null,
  reason: "severity is 4",
  spatial: null,
};
const PRICE: ExplainedConstraint = { ...SEVERITY, attribute: "price", asked: "price < 100", value: null, truth: null };

const EXPLANATION: MapExplanation = {
  matches: false,
  verdict: "'floods' of 'ann' does not match: 1 of 2 constraints of its nearest filter fails.",
  key: "floods",
  subscriber: "ann",
  written: "S_WITHIN(geometry, BBOX(0, 0, 4, 4)) AND severity >= 3 OR price < 100",
  truth: false,
  nearest: 1,
  filters: [
    { truth: null, constraints: [PRICE] },
    { truth: false, constraints: [SEVERITY, AREA] },
  ],
  track: null,
  note: null,
};

function detail(change: Partial<SubscriptionDetail> = {}): SubscriptionDetail {
  return { ...subscription("floods"), lag: 3, last: [message(7)], examined: 10, complete: true, ...change };
}

/** A question whose answer does not matter to a test. */
const PENDING = () => new Promise<never>(() => undefined);

function openWhy(explanation: MapExplanation = EXPLANATION) {
  const explain = vi.fn(() => Promise.resolve(explanation));
  const made = page({ explain });
  made.context.store.panel.value = "ask";
  made.context.store.selection.value = { kind: "match", key: "floods", sequence: 7 };
  render(<AskPanel context={made.context} />);
  return { ...made, explain };
}

describe("why", () => {
  it("shows the verdict and every constraint with its value, as a tree", async () => {
    const { explain, announced } = openWhy();
    expect(await screen.findByText("It does not match.")).toBeTruthy();
    expect(explain).toHaveBeenCalledWith({ key: "floods", sequence: 7 });
    const tree = screen.getByRole("list", { name: "Reasons" });
    expect(within(tree).getByText("S_WITHIN(geometry, POLYGON …)")).toBeTruthy();
    expect(within(tree).getByText("4")).toBeTruthy();
    expect(within(tree).getByText("missing")).toBeTruthy();
    expect(within(tree).getAllByText(/unknown/)).not.toHaveLength(0);
    expect(tree.textContent).toContain("filter 2, the nearest");
    expect(tree.textContent).toContain("The filter asks for equals, inside or covered-by.");
    await waitFor(() => { expect(announced).toContain(EXPLANATION.verdict); });
  });

  it("draws both regions, what they share, and the relation's name on the map and in the panel", async () => {
    const { map, context } = openWhy();
    await screen.findByText("It does not match.");
    await waitFor(() => { expect(map.kinds("relation")).toEqual(["asked", "found", "shared"]); });
    expect(map.layers.get("relation")?.at(-1)?.properties).toEqual({ label: "overlaps" });
    expect(map.fitted.at(-1)).toHaveLength(2);
    expect(screen.getByRole("img", { name: /the message overlaps the region/ })).toBeTruthy();
    context.store.panel.value = "messages";
    await waitFor(() => { expect(map.kinds("relation")).toEqual([]); });
  });

  it("removes the drawing when something else is asked", async () => {
    const { map, context } = openWhy();
    await waitFor(() => { expect(map.kinds("relation")).toHaveLength(3); });
    context.store.selection.value = null;
    await waitFor(() => { expect(map.kinds("relation")).toEqual([]); });
  });

  it("says what the server says when it cannot explain", async () => {
    const { context } = page({ explain: vi.fn(() => Promise.reject(new ApiError("message 7 is not kept any more", 410))) });
    context.store.selection.value = { kind: "match", key: "floods", sequence: 7 };
    render(<AskPanel context={context} />);
    expect((await screen.findByRole("alert")).textContent).toBe("message 7 is not kept any more");
  });

  it("keeps markup in filters as text", async () => {
    openWhy({ ...EXPLANATION, written: "<img src=x onerror=alert(1)>", filters: [{ truth: true, constraints: [{ ...SEVERITY, value: "<b>4</b>" }] }], nearest: 0 });
    expect(await screen.findByText("<b>4</b>")).toBeTruthy();
    expect(document.querySelector("img, b")).toBeNull();
  });

  it("chooses the spatial constraint of the nearest filter first", () => {
    expect(firstSpatial(EXPLANATION)).toEqual({ filter: 1, constraint: 1 });
    expect(firstSpatial({ ...EXPLANATION, filters: [{ truth: null, constraints: [PRICE] }], nearest: 0 })).toBeNull();
  });

  it("labels nothing without a relation", () => {
    expect(relationFeatures([{ kind: "asked", geometry: boxPolygon(0, 0, 1, 1) }], null)[0]?.properties).toBeUndefined();
  });
});

describe("a message", () => {
  it("lists attributes and who matched, and asks why at a click", async () => {
    const { context } = page({ explain: vi.fn(PENDING) });
    context.store.messages.value = [message(7, { matched: ["floods"], matches: 1 })];
    context.store.selection.value = { kind: "message", sequence: 7 };
    render(<AskPanel context={context} />);
    expect(screen.getByRole("rowheader", { name: "severity" }).nextSibling?.textContent).toBe("3");
    await userEvent.click(screen.getByRole("button", { name: /floods/ }));
    expect(context.store.selection.value).toEqual({ kind: "match", key: "floods", sequence: 7 });
  });

  it("searches among many that matched", async () => {
    const keys = Array.from({ length: 60 }, (_, k) => `zone-${k}`);
    const all = [...keys, ...Array.from({ length: 340 }, (_, k) => `far-${k}`)];
    const matched = vi.fn((_: number, { after = 0 }: { after?: number }) =>
      Promise.resolve({ matched: all.slice(after, after + 250), next: after + 250 < all.length ? after + 250 : null, count: all.length }),
    );
    const { context } = page({ explain: vi.fn(PENDING), matched });
    context.store.messages.value = [message(7, { matched: keys, matches: 400 })];
    context.store.selection.value = { kind: "message", sequence: 7 };
    render(<AskPanel context={context} />);
    const list = screen.getByRole("list", { name: "Subscriptions that matched" });
    expect(within(list).getAllByRole("button")).toHaveLength(20);
    expect(await screen.findByRole("button", { name: "Show 200 more of 400" })).toBeTruthy();
    await userEvent.type(screen.getByRole("searchbox"), "zone-5");
    expect(within(list).getAllByRole("button")).toHaveLength(11);
    await userEvent.clear(screen.getByRole("searchbox"));
    await userEvent.type(screen.getByRole("searchbox"), "far-339");
    expect(within(list).getAllByRole("button")).toHaveLength(1);
  });

  it("is loaded if the page does not keep it", async () => {
    const messages = vi.fn(() => Promise.resolve({ messages: [message(3)], next: null, previous: null, complete: true }));
    const { context } = page({ messages });
    context.store.selection.value = { kind: "message", sequence: 3 };
    render(<AskPanel context={context} />);
    expect(await screen.findByRole("heading", { name: "Hail" })).toBeTruthy();
    expect(messages).toHaveBeenCalledWith({ after: 2, limit: 1 });
  });

  it("says so if it is gone", async () => {
    const { context } = page({ messages: vi.fn(() => Promise.resolve({ messages: [], next: null, previous: null, complete: false })) });
    context.store.selection.value = { kind: "message", sequence: 3 };
    render(<AskPanel context={context} />);
    expect(await screen.findByText("Message 3 is not kept any more.")).toBeTruthy();
  });

  it("asks why not for a subscription that is searched", async () => {
    const { context } = page({ explain: vi.fn(PENDING) });
    context.store.messages.value = [message(7)];
    context.store.subscriptions.value = new Map([["fires", subscription("fires")], ["floods", subscription("floods")]]);
    context.store.selection.value = { kind: "message", sequence: 7 };
    render(<AskPanel context={context} />);
    await userEvent.click(screen.getByRole("button", { name: "Search a subscription" }));
    await userEvent.type(screen.getByRole("searchbox", { name: "Key or subscriber" }), "fir{Enter}");
    expect(context.store.selection.value).toEqual({ kind: "match", key: "fires", sequence: 7 });
  });

  it("asks why not for a subscription that is clicked on the map", async () => {
    const { context, map } = page({ explain: vi.fn(PENDING) });
    context.store.messages.value = [message(7)];
    context.store.selection.value = { kind: "message", sequence: 7 };
    render(<AskPanel context={context} />);
    await userEvent.click(screen.getByRole("button", { name: "Choose on the map" }));
    await waitFor(() => { expect(context.store.mapMode.value).toBe("pick"); });
    map.click({ layer: "messages", id: "9" });
    expect(context.store.selection.value).toEqual({ kind: "message", sequence: 7 });
    map.click({ layer: "messages", id: "9" }, { layer: "subscriptions", id: "fires" });
    expect(context.store.selection.value).toEqual({ kind: "match", key: "fires", sequence: 7 });
    await waitFor(() => { expect(context.store.mapMode.value).toBe("select"); });
  });
});

describe("a subscription", () => {
  function open(change: Partial<SubscriptionDetail> = {}, readOnly = false) {
    const pauseSubscription = vi.fn(() => Promise.resolve({}));
    const deleteSubscription = vi.fn(() => Promise.resolve({ applies_until: 9 }));
    const load = vi.fn(() => Promise.resolve(detail(change)));
    const made = page({ subscription: load, pauseSubscription, deleteSubscription, explain: vi.fn(PENDING) }, { read_only: readOnly });
    made.context.store.selection.value = { kind: "subscription", key: "floods" };
    render(<AskPanel context={made.context} />);
    return { ...made, load, pauseSubscription, deleteSubscription };
  }

  it("shows filter, lag and messages, and asks why at a click", async () => {
    const { context } = open();
    expect(await screen.findByText("3 messages behind")).toBeTruthy();
    expect(screen.getByText("severity >= 3")).toBeTruthy();
    await userEvent.click(screen.getByRole("button", { name: /Hail/ }));
    expect(context.store.selection.value).toEqual({ kind: "match", key: "floods", sequence: 7 });
  });

  it("pauses, and resumes", async () => {
    const { pauseSubscription, load, announced } = open();
    await userEvent.click(await screen.findByRole("button", { name: "Pause" }));
    expect(pauseSubscription).toHaveBeenCalledWith("floods", true);
    await waitFor(() => { expect(load).toHaveBeenCalledTimes(2); });
    expect(announced).toContain("Paused.");
  });

  it("deletes only after it has asked", async () => {
    const { deleteSubscription, context } = open();
    await userEvent.click(await screen.findByRole("button", { name: "Delete" }));
    expect(deleteSubscription).not.toHaveBeenCalled();
    await waitFor(() => { expect(document.activeElement?.textContent).toBe("Keep it"); });
    await userEvent.keyboard("{Escape}");
    expect(screen.queryByText("Delete floods for good?")).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Delete" }));
    await userEvent.click(within(screen.getByRole("group", { name: "Delete floods for good?" })).getByRole("button", { name: "Delete" }));
    expect(deleteSubscription).toHaveBeenCalledWith("floods");
    await waitFor(() => { expect(context.store.selection.value).toBeNull(); });
  });

  it("hides what changes things in read-only mode", async () => {
    open({}, true);
    await screen.findByText("severity >= 3");
    for (const name of ["Pause", "Change", "Delete"]) expect(screen.queryByRole("button", { name })).toBeNull();
  });

  it("shows what a public screen may see", async () => {
    open({ subscriber: null, filter: null, lag: null }, true);
    expect(await screen.findAllByText("not shown")).toHaveLength(2);
  });
});

describe("nothing selected", () => {
  it("finds subscriptions by key and subscriber, beginnings first", () => {
    const all = new Map(["north-flood", "flood-1", "x"].map((key) => [key, subscription(key, { subscriber: key === "x" ? "floodwatch" : "ann" })]));
    expect(findSubscriptions(all, "FLOOD").map(({ key }) => key)).toEqual(["flood-1", "north-flood", "x"]);
    expect(findSubscriptions(all, "zzz")).toEqual([]);
  });

  it("opens a subscription that only the server knows, and says if there is none", async () => {
    const load = vi.fn((key: string) => (key === "far" ? Promise.resolve(detail({ key: "far" })) : Promise.reject(new ApiError("no", 404))));
    const { context } = page({ subscription: load });
    render(<AskPanel context={context} />);
    const search = screen.getByRole("searchbox");
    await userEvent.type(search, "nowhere{Enter}");
    expect((await screen.findByRole("alert")).textContent).toBe("No subscription has the key nowhere.");
    await userEvent.clear(search);
    await userEvent.type(search, "far{Enter}");
    await waitFor(() => { expect(context.store.selection.value).toEqual({ kind: "subscription", key: "far" }); });
  });
});
