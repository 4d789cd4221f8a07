/** Which messages are listed: those that contain all words, of the chosen kind, in the chosen order. */
import type { Chunks } from "./chunks.ts";
import type { ItemLine } from "./format.ts";

export const SHOWN = ["all", "matched", "unmatched", "rejected"] as const;
export type Shown = (typeof SHOWN)[number];
export type Order = "time" | "matches";
export interface Question {
  text: string;
  shown: Shown;
  order: Order;
}

/** The words of a search; quotation marks keep words together. */
export function wordsOf(text: string): string[] {
  return [...text.toLowerCase().matchAll(/"([^"]+)"|\S+/g)].map((found) => found[1] ?? found[0]);
}

export function hasAllWords(item: ItemLine, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const [id, , ...values] = item;
  const whole = [id, ...values].filter((value) => value !== null).join("\n").toLowerCase();
  return words.every((word) => whole.includes(word));
}

function isShown(matches: number, shown: Shown): boolean {
  if (shown === "matched") return matches > 0;
  if (shown === "unmatched") return matches === 0;
  return shown === "all" || matches < 0;
}

/**
 * Find the messages that answer a question. `progress` hears of the share that was searched and of the rows found so
 * far. Returns null if `isCurrent` said no meanwhile.
 */
export async function findMessages(
  chunks: Chunks,
  counts: Int32Array,
  question: Question,
  isCurrent: () => boolean,
  progress: (rows: Uint32Array, share: number) => void,
): Promise<Uint32Array | null> {
  const words = wordsOf(question.text);
  const rows = new Uint32Array(counts.length);
  let found = 0;
  if (words.length === 0) {
    counts.forEach((matches, row) => {
      if (isShown(matches, question.shown)) rows[found++] = row;
    });
  } else {
    const total = chunks.chunks("items");
    let shown = performance.now();
    const load = (chunk: number) => {
      const loading = chunks.chunk("items", chunk);
      loading.catch(() => undefined); // a search that was given up does not wait for the next chunk
      return loading;
    };
    let next = total > 0 ? load(0) : null;
    for (let chunk = 0; next !== null; chunk++) {
      const first = chunks.first("items", chunk);
      const lines: ItemLine[] = await next;
      next = chunk + 1 < total ? load(chunk + 1) : null; // comes while this one is searched
      if (!isCurrent()) return null;
      lines.forEach((line, place) => {
        const row = first + place;
        if (isShown(counts[row] ?? 0, question.shown) && hasAllWords(line, words)) rows[found++] = row;
      });
      if (performance.now() - shown > 150) {
        progress(inOrder(rows.slice(0, found), counts, question.order), (chunk + 1) / total);
        shown = performance.now();
        await new Promise((resolve) => setTimeout(resolve)); // let the page answer the user
        if (!isCurrent()) return null;
      }
    }
  }
  return inOrder(rows.slice(0, found), counts, question.order);
}

/** Rows are in the order of time already; by matches, the most come first, and equal ones in the order of time. */
function inOrder(rows: Uint32Array, counts: Int32Array, order: Order): Uint32Array {
  if (order === "matches") rows.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b);
  return rows;
}
