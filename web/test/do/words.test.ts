import { describe, expect, it } from "vitest";
import type { ExplainedConstraint, MapMessage } from "../../src/api/types.ts";
import { boxPolygon } from "../../src/do/filter/json.ts";
import { agoText, geometryText, kindsText, listed, messageTitle, relationSentence, shortConstraint, timeText, transitionText, valueText, verdictOf } from "../../src/do/ui/words.ts";

const SPATIAL: ExplainedConstraint = {
  attribute: "area",
  asked: "S_WITHIN(area, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))",
  value: boxPolygon(2, 2, 6, 6),
  truth: false,
  relation: "overlaps",
  reason: "area overlaps it",
  spatial: {
    operator: "S_WITHIN",
    negated: false,
    relations: ["equals", "inside", "covered-by"],
    asked: boxPolygon(0, 0, 4, 4),
    found: boxPolygon(2, 2, 6, 6),
  },
};

describe("constraints in words", () => {
  it("says how regions lie, and what was asked for", () => {
    expect(relationSentence(SPATIAL)).toBe(
      "The message's area overlaps the region: each has a part outside the other. " +
        "The filter asks for equals, inside or covered-by.",
    );
    expect(relationSentence({ ...SPATIAL, relation: "inside" })).toBe(
      "The message's area lies inside the region, clear of its boundary.",
    );
    expect(relationSentence({ ...SPATIAL, relation: null })).toBe("The message has no region or point in area.");
    expect(relationSentence({ ...SPATIAL, spatial: null })).toBeNull();
  });

  it("shortens regions", () => {
    expect(shortConstraint(SPATIAL)).toBe("S_WITHIN(area, POLYGON …)");
    expect(shortConstraint({ ...SPATIAL, asked: "severity >= 3", spatial: null })).toBe("severity >= 3");
  });

  it("has three verdicts", () => {
    expect([true, false, null].map(verdictOf)).toEqual(["yes", "no", "unknown"]);
  });
});

describe("values in words", () => {
  it("counts vertices once", () => {
    expect(geometryText(boxPolygon(0, 0, 1, 1))).toBe("region, 4 vertices");
    expect(geometryText({ type: "Point", coordinates: [11.123456789, 43] })).toBe("point 11.12346, 43");
    expect(geometryText({ type: "MultiPolygon", coordinates: [boxPolygon(0, 0, 1, 1).coordinates, boxPolygon(3, 3, 4, 4).coordinates] })).toBe(
      "region of 2 parts, 8 vertices",
    );
  });

  it("shows text as it is, null as missing, others as JSON", () => {
    expect([valueText("<b>"), valueText(null), valueText([1, "a"]), valueText(false)]).toEqual(["<b>", "missing", '[1,"a"]', "false"]);
  });

  it("joins lists", () => {
    expect([listed([], "or"), listed(["a"], "or"), listed(["a", "b", "c"], "and")]).toEqual(["", "a", "a, b and c"]);
  });

  it("names messages", () => {
    const message: MapMessage = { sequence: 7, at: "", id: null, own: false, shapes: [], attributes: {}, matched: [], matches: 0, transitions: [] };
    expect(messageTitle(message)).toBe("Message 7");
    expect(messageTitle({ ...message, attributes: { event: "Hail", severity: 3 } })).toBe("Hail");
  });

  it("tells times", () => {
    const now = new Date("2024-05-01T12:00:00Z");
    expect(agoText("2024-05-01T11:59:15Z", now)).toBe("45 s");
    expect(agoText("2024-05-01T09:00:00Z", now)).toBe("3 h");
    expect(timeText("no time", now)).toBe("no time");
    expect(timeText("2024-04-01T09:00:00Z", now)).toContain("2024-04-01");
  });

  it("tells events of objects", () => {
    expect(kindsText(["enter", { dwell: "5m" }])).toBe("enter, dwell 5m");
    expect(kindsText("match")).toBe("match");
    expect(transitionText({ key: "depot", id: "b7", kind: "exit", before: "inside", after: "disjoint", time: "" })).toBe("b7 left depot");
  });
});
