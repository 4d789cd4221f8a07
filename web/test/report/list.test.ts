import { describe, expect, it } from "vitest";
import { rowsInView, scrollFor } from "../../src/report/list.tsx";

describe("rowsInView", () => {
  it("shows rows around the view", () => {
    expect(rowsInView(0, 400, 1000, 50)).toMatchObject({ height: 50_000, first: 0, last: 12 });
    expect(rowsInView(5000, 400, 1000, 50)).toMatchObject({ first: 96, last: 112, shift: 0 });
    expect(rowsInView(0, 400, 0, 50)).toMatchObject({ height: 0, first: 0, last: 0 });
  });

  it("reaches all of a million rows, although no element can be as high", () => {
    const { height } = rowsInView(0, 400, 1_000_000, 50);
    expect(height).toBeLessThan(2 ** 24);
    const end = rowsInView(height - 400, 400, 1_000_000, 50);
    expect(end.last).toBe(1_000_000);
    const target = scrollFor(600_000, 0, 400, 1_000_000, 50) ?? 0;
    const { first, last } = rowsInView(target, 400, 1_000_000, 50);
    expect(first).toBeLessThan(600_000);
    expect(last).toBeGreaterThan(600_000);
  });

  it("scrolls only if a row is out of view", () => {
    expect(scrollFor(3, 0, 400, 1000, 50)).toBeNull();
    expect(scrollFor(8, 0, 400, 1000, 50)).toBe(50);
    expect(scrollFor(0, 5000, 400, 1000, 50)).toBe(0);
    expect(scrollFor(2, 0, 400, 4, 50)).toBeNull();
  });
});
