import { describe, expect, it } from "vitest";
import { Chunks, type ChunkScope } from "../../src/report/chunks.ts";
import type { Header, ItemLine } from "../../src/report/format.ts";
import { findMessages, hasAllWords, type Question, wordsOf } from "../../src/report/search.ts";

const ROWS = 95;
const PER_CHUNK = 10;

function headerOf(files: string | null): Header {
  const starts = Array.from({ length: 11 }, (_, chunk) => Math.min(ROWS, chunk * PER_CHUNK));
  const none = [0];
  return {
    format: 1, plain: true, bounds: null, files, columns: ["event"], title: 0, time: null, unit: "key", relations: [],
    starts: { items: starts, details: none, counts: none, subscriptions: none, overview: none },
  }; // prettier-ignore
}

const lineOf = (row: number): ItemLine => [`m${row}`, null, row % 7 === 0 ? "Storm <b>" : "rain"];

function reading(most?: number) {
  const loaded: string[] = [];
  const scope: ChunkScope = {};
  const load = (address: string) => {
    loaded.push(address);
    const number = Number(/items-(\d{5})\.js$/.exec(address)?.[1]);
    const rows = Array.from({ length: PER_CHUNK }, (_, place) => number * PER_CHUNK + place).filter((row) => row < ROWS);
    scope.contradaChunk?.("items", number, rows.map(lineOf));
    return Promise.resolve();
  };
  return { chunks: new Chunks(headerOf("report-data/"), scope, load, most), loaded, scope };
}

describe("Chunks", () => {
  it("loads a chunk when one of its lines is asked for, and once", async () => {
    const { chunks, loaded } = reading();
    expect(loaded).toEqual([]);
    expect(await chunks.line("items", 42)).toEqual(lineOf(42));
    expect((await chunks.lines("items", [3, 41, 94])).map(([id]) => id)).toEqual(["m3", "m41", "m94"]);
    expect(loaded).toEqual(["report-data/items-00004.js", "report-data/items-00000.js", "report-data/items-00009.js"]);
  });

  it("gives up the chunk that was not used for longest", async () => {
    const { chunks, loaded } = reading(2);
    for (const row of [5, 15, 5, 25, 5]) await chunks.line("items", row);
    expect(loaded).toHaveLength(3);
    await chunks.line("items", 15);
    expect(loaded.at(-1)).toBe("report-data/items-00001.js");
  });

  it("takes chunks of the page, and says what is missing", async () => {
    const scope: ChunkScope = { contradaChunks: [["items", 0, [lineOf(0)]]] };
    const chunks = new Chunks(headerOf(null), scope, () => Promise.reject(new Error("not asked for")));
    expect(await chunks.line("items", 0)).toEqual(lineOf(0));
    await expect(chunks.line("items", 50)).rejects.toThrow("no chunk items 5");
    const lost = new Chunks(headerOf("d/"), {}, () => Promise.reject(new Error("d/items-00000.js is missing")));
    await expect(lost.line("items", 0)).rejects.toThrow("is missing");
    const damaged = new Chunks(headerOf("d/"), {}, () => Promise.resolve());
    await expect(damaged.line("items", 0)).rejects.toThrow("is damaged");
  });
});

describe("search", () => {
  const counts = Int32Array.from({ length: ROWS }, (_, row) => (row === 3 ? -1 : row % 5));
  const ask = async (question: Partial<Question>) => {
    const whole: Question = { text: "", shown: "all", order: "time", ...question };
    const found = await findMessages(reading().chunks, counts, whole, () => true, () => undefined);
    return [...(found ?? [])];
  };

  it("finds words in any attribute, whatever their case", async () => {
    expect(wordsOf('Storm "two words" x')).toEqual(["storm", "two words", "x"]);
    expect(hasAllWords(["7", null, "Big STORM", null], ["storm", "7"])).toBe(true);
    expect(hasAllWords(["7", null, "rain"], ["storm"])).toBe(false);
    expect(await ask({ text: "storm" })).toEqual(Array.from({ length: ROWS }, (_, row) => row).filter((row) => row % 7 === 0));
    expect(await ask({ text: "m94 <b" })).toEqual([]);
    expect(await ask({ text: "m91 <b" })).toEqual([91]);
  });

  it("lists by matches, and leaves out what is not asked for", async () => {
    const most = await ask({ order: "matches" });
    expect(most).toHaveLength(ROWS);
    expect(most.slice(0, 3)).toEqual([4, 9, 14]);
    expect(await ask({ shown: "rejected" })).toEqual([3]);
    expect(await ask({ shown: "matched" })).toHaveLength([...counts].filter((count) => count > 0).length);
    expect((await ask({ shown: "unmatched", text: "storm" })).every((row) => counts[row] === 0)).toBe(true);
  });

  it("stops when another question was asked", async () => {
    const question: Question = { text: "storm", shown: "all", order: "time" };
    expect(await findMessages(reading().chunks, counts, question, () => false, () => undefined)).toBeNull();
  });
});
