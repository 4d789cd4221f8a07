import { describe, expect, it } from "vitest";
import { formatPermalink, parsePermalink, type Permalink } from "../src/app/permalink.ts";

const NOTHING: Permalink = { view: null, time: null, selection: null, panel: null };

describe("permalinks", () => {
  it.each<Permalink>([
    NOTHING,
    { ...NOTHING, view: { x: 11.33, y: 43.31, zoom: 14.25 } },
    { ...NOTHING, time: Date.UTC(2026, 4, 1, 12, 0, 30) },
    { ...NOTHING, selection: { kind: "message", sequence: 42 } },
    { ...NOTHING, selection: { kind: "subscription", key: 'a&b=c#d,"é<script>' } },
    { ...NOTHING, selection: { kind: "match", key: "flood", sequence: 7 }, panel: "ask" },
    { ...NOTHING, selection: { kind: "track", attribute: "vehicle", id: "bus 4" }, panel: "tracks" },
  ])("read back what they were made of: %j", (link) => {
    expect(parsePermalink(formatPermalink(link))).toEqual(link);
  });

  it("are readable", () => {
    const link = formatPermalink({ ...NOTHING, view: { x: 11.5, y: -3, zoom: 4 }, time: 0 });
    expect(link).toBe("#at=11.5,-3,4&time=1970-01-01T00:00:00.000Z");
  });

  it.each(["#at=1,2", "#at=a,b,c", "#at=,,", "#time=yesterday", "#message=-1", "#message=1e9", "#panel=nothing", "#%"])(
    "ignore what makes no sense: %s",
    (hash) => { expect(parsePermalink(hash)).toEqual(NOTHING); },
  );

  it("keep the zoom level within what the map has", () => {
    expect(parsePermalink("#at=1,2,99").view?.zoom).toBe(22);
  });
});
