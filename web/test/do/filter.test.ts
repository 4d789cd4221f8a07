import { describe, expect, it } from "vitest";
import { boxPolygon, readForm, writeJson, type Json } from "../../src/do/filter/json.ts";
import {
  formProblems,
  newCondition,
  newForm,
  newSpatial,
  replaceAt,
  spatialConditions,
  valueProblem,
  withOperator,
  withType,
  type Condition,
  type FilterForm,
} from "../../src/do/filter/model.ts";
import { complement, RELATIONS, relationsOfWord, relationWord, type Relation } from "../../src/do/filter/relations.ts";
import samples from "../../src/do/filter/samples.json";
import { writeName, writeText } from "../../src/do/filter/text.ts";

const SQUARE = boxPolygon(0, 0, 4, 4);

function formOf(json: unknown): FilterForm {
  const { form, reason } = readForm(json as Json);
  if (form === null) throw new Error(reason);
  return form;
}

describe("samples that a test in Python holds against the parser", () => {
  it.each(samples)("$text", ({ text, json }) => {
    const form = formOf(json);
    expect(writeText(form)).toBe(text);
    expect(writeJson(form)).toEqual(json);
    expect(formProblems(form)).toEqual([]);
  });
});

describe("groups", () => {
  const a = { op: "=", args: [{ property: "a" }, 1] };
  const b = { op: "=", args: [{ property: "b" }, 2] };
  const c = { op: "=", args: [{ property: "c" }, 3] };

  it("keep AND and OR one level deep", () => {
    const json = { op: "or", args: [{ op: "and", args: [a, b] }, c] };
    expect(writeText(formOf(json))).toBe("(a = 1 AND b = 2) OR c = 3");
    expect(writeJson(formOf(json))).toEqual(json);
  });

  it("keep the negation of a group", () => {
    const json = { op: "and", args: [{ op: "not", args: [{ op: "or", args: [a, b] }] }, c] };
    expect(writeText(formOf(json))).toBe("NOT (a = 1 OR b = 2) AND c = 3");
    expect(writeJson(formOf(json))).toEqual(json);
  });

  it("keep the negation of the whole filter", () => {
    const json = { op: "not", args: [{ op: "or", args: [a, b] }] };
    expect(writeText(formOf(json))).toBe("NOT (a = 1 OR b = 2)");
    expect(writeJson(formOf(json))).toEqual(json);
  });

  it("resolve double negations and those of relations", () => {
    expect(writeText(formOf({ op: "not", args: [{ op: "not", args: [a] }] }))).toBe("a = 1");
    const apart = { op: "not", args: [{ op: "s_intersects", args: [{ property: "x" }, SQUARE] }] };
    expect(writeText(formOf(apart))).toBe("S_DISJOINT(x, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))");
  });

  it("name what is nested too deeply", () => {
    const json = { op: "or", args: [{ op: "and", args: [a, { op: "or", args: [b, c] }] }, c] };
    expect(readForm(json).reason).toContain("OR is nested more than one level deep");
  });
});

describe("filters that a form cannot show", () => {
  it.each([
    [{ op: "=", args: [{ property: "a" }, { column: "b" }] }, "the column $b"],
    [{ op: "s_within", args: [{ property: "a" }, { column: "g" }] }, "the column $g"],
    [{ op: "=", args: [{ property: "a" }, 2 ** 53 + 2] }, "more digits"],
    [{ op: "in", args: [{ property: "a" }, ["x", 1]] }, "different types"],
    [{ op: "=", args: [{ op: "casei", args: [{ property: "a" }] }, "x"] }, "folds one side"],
    [{ op: "far_from", args: [{ property: "a" }, 1] }, "the operator far_from"],
    [{ op: "s_within", args: [{ property: "a" }, { type: "LineString", coordinates: [] }] }, "the region"],
    [true, "the expression true"],
  ])("%j", (json, reason) => {
    const reading = readForm(json);
    expect(reading.form).toBeNull();
    expect(reading.reason).toContain(reason);
  });
});

describe("values", () => {
  const condition = (change: Partial<Condition>): FilterForm => ({
    join: "and",
    terms: [{ ...newCondition("x"), ...change }],
  });

  it("writes an integer beyond the doubles exactly", () => {
    const form = condition({ type: "number", values: ["9007199254740993"] });
    expect(writeText(form)).toBe("x = 9007199254740993");
    expect(writeJson(form)).toEqual({ op: "=", args: [{ property: "x" }, { decimal: "9007199254740993" }] });
  });

  it("writes a day as a date and other times as timestamps", () => {
    expect(writeText(condition({ type: "timestamp", values: ["2024-05-01"] }))).toBe("x = DATE('2024-05-01')");
    expect(writeText(condition({ type: "timestamp", values: ["2024-05-01T12:00Z"] }))).toBe(
      "x = TIMESTAMP('2024-05-01T12:00Z')",
    );
  });

  it("writes the negation of a comparison in brackets", () => {
    expect(writeText(condition({ type: "number", values: ["3"], negated: true }))).toBe("NOT (x = 3)");
  });

  it("quotes quotes: text cannot leave its literal", () => {
    expect(writeText(condition({ values: ["' OR 1 = 1 --"] }))).toBe("x = ''' OR 1 = 1 --'");
    expect(writeName('a" OR "b')).toBe('"a"" OR ""b"');
    expect(writeName("sea.depth")).toBe("sea.depth");
    expect(writeName("not")).toBe('"not"');
    expect(writeName("2nd")).toBe('"2nd"');
  });

  it("reads a box as a region", () => {
    const [spatial] = spatialConditions(formOf({ op: "s_within", args: [{ property: "g" }, { bbox: [0, 0, 4, 4] }] }));
    expect(spatial?.condition.place).toEqual(SQUARE);
  });

  it.each([
    ["12", "number", true],
    ["-.5e3", "number", true],
    ["12 m", "number", false],
    ["", "number", false],
    ["0x10", "number", false],
    ["2024-05-01T12:00:00.5+02:00", "timestamp", true],
    ["yesterday", "timestamp", false],
    ["2024-13-45", "timestamp", false],
    ["yes", "boolean", false],
    ["", "text", true],
  ] as const)("%j as %s", (text, type, isGood) => {
    expect(valueProblem(text, type) === null).toBe(isGood);
  });
});

describe("the form", () => {
  it("says what is missing, where", () => {
    const form: FilterForm = {
      join: "and",
      terms: [newSpatial("", null), { kind: "group", negated: false, join: "or", leaves: [newCondition("")] }],
    };
    expect(formProblems(form).map(({ path, field }) => [path, field])).toEqual([
      [[0], "attribute"],
      [[0], "place"],
      [[1, 0], "attribute"],
    ]);
    expect(formProblems({ join: "and", terms: [] })[0]?.field).toBe("terms");
  });

  it("refuses no relation and all of them", () => {
    const spatial = newSpatial("g", SQUARE);
    for (const relations of [[], [...RELATIONS]]) {
      expect(formProblems({ join: "and", terms: [{ ...spatial, relations }] })[0]?.field).toBe("relations");
    }
  });

  it("keeps as many values as an operator takes", () => {
    const between = withOperator({ ...newCondition("x"), values: ["1"] }, "between");
    expect(between.values).toEqual(["1", ""]);
    expect(withOperator(between, "isNull").values).toEqual([]);
    expect(withOperator(between, "=").values).toEqual(["1"]);
  });

  it("leaves operators that a type lacks", () => {
    const like: Condition = { ...newCondition("x"), operator: "like", ignoreCase: true };
    expect(withType(like, "number")).toMatchObject({ operator: "=", ignoreCase: false });
    expect(withType(like, "boolean").values).toEqual(["true"]);
  });

  it("replaces and removes terms and leaves", () => {
    const form = newForm();
    const both = { ...form, terms: [...form.terms, { kind: "group" as const, negated: false, join: "or" as const, leaves: [newCondition("a")] }] };
    expect(replaceAt(both, [1, 0], null).terms[1]).toMatchObject({ leaves: [] });
    expect(replaceAt(both, [1, 0], newCondition("b")).terms[1]).toMatchObject({ leaves: [{ attribute: "b" }] });
    expect(replaceAt(both, [0], null).terms).toHaveLength(1);
  });
});

describe("relations", () => {
  it("have a word for every named set, and back", () => {
    for (const word of ["s_intersects", "s_within", "s_contains", "s_touches", "inside", "covered_by"]) {
      expect(relationWord(relationsOfWord(word) ?? [])).toBe(word);
    }
    expect(relationsOfWord("meets")).toEqual(["meets"]);
    expect(relationsOfWord("near")).toBeNull();
  });

  it("write every set of relations so that reading gives it back", () => {
    for (let bits = 1; bits < 255; bits++) {
      const relations = RELATIONS.filter((_, k) => bits & (1 << k));
      const json = writeJson({ join: "and", terms: [{ ...newSpatial("g", SQUARE), relations }] });
      const [back] = spatialConditions(formOf(json));
      expect(back?.condition.relations).toEqual(relations);
    }
  });

  it("complement twice is the same", () => {
    const some: Relation[] = ["meets", "inside"];
    expect(complement(complement(some))).toEqual(some);
  });
});
