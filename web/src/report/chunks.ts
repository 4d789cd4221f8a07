/**
 * Read lines of a report. Chunks beside the page are loaded by script elements when they are needed, since a page that
 * was opened by file:// can fetch nothing. Chunks that were not used for long are given up: the memory stays bounded.
 */
import type { ChunkName, Header, Lines } from "./format.ts";

/** What a chunk's script calls. The page defines it before this module runs, and keeps what came before. */
export type ChunkCall = [name: ChunkName, number: number, lines: unknown[]];
export interface ChunkScope {
  contradaChunk?: (...call: ChunkCall) => void;
  contradaChunks?: ChunkCall[];
}
export type ScriptLoader = (address: string) => Promise<void>;

const KEPT = 48; // chunks beside the page, of at most about a megabyte each

export class Chunks {
  readonly #header: Header;
  readonly #load: ScriptLoader;
  readonly #embedded = new Map<string, unknown[]>();
  readonly #arrived = new Map<string, unknown[]>();
  readonly #kept = new Map<string, Promise<unknown[]>>();
  readonly #most: number;

  constructor(header: Header, scope: ChunkScope, load: ScriptLoader = loadScript, most = KEPT) {
    this.#header = header;
    this.#load = load;
    this.#most = most;
    for (const [name, number, lines] of scope.contradaChunks ?? []) this.#embedded.set(keyOf(name, number), lines);
    scope.contradaChunks = [];
    scope.contradaChunk = (name, number, lines) => {
      this.#arrived.set(keyOf(name, number), lines);
    };
  }

  /** Number of lines of a name. */
  count(name: ChunkName): number {
    return this.#header.starts[name].at(-1) ?? 0;
  }

  /** The number of chunks of a name. */
  chunks(name: ChunkName): number {
    return this.#header.starts[name].length - 1;
  }

  /** Which chunk holds a line. */
  chunkOf(name: ChunkName, line: number): number {
    const starts = this.#header.starts[name];
    let [low, high] = [0, starts.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= line) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The number of the first line of a chunk. */
  first(name: ChunkName, chunk: number): number {
    return this.#header.starts[name][chunk] ?? 0;
  }

  /** All lines of a chunk. */
  async chunk<Name extends ChunkName>(name: Name, number: number): Promise<Lines[Name][]> {
    const key = keyOf(name, number);
    const embedded = this.#embedded.get(key);
    if (embedded !== undefined) return embedded as Lines[Name][];
    const found = this.#kept.get(key) ?? this.#fetch(name, number);
    // The latest use is last in the map; the first is given up.
    this.#kept.delete(key);
    this.#kept.set(key, found);
    for (const old of this.#kept.keys()) {
      if (this.#kept.size <= this.#most) break;
      this.#kept.delete(old);
    }
    return (await found) as Lines[Name][];
  }

  async line<Name extends ChunkName>(name: Name, number: number): Promise<Lines[Name]> {
    const chunk = this.chunkOf(name, number);
    const line = (await this.chunk(name, chunk))[number - this.first(name, chunk)];
    if (line === undefined) throw new Error(`the report has no line ${number} of ${name}`);
    return line;
  }

  /** Lines in the order of `numbers`, which ascend; each chunk is read once. */
  async lines<Name extends ChunkName>(name: Name, numbers: readonly number[]): Promise<Lines[Name][]> {
    const places = numbers.map((number) => this.chunkOf(name, number));
    const chunks = [...new Set(places)];
    const loaded = new Map(
      await Promise.all(chunks.map(async (chunk) => [chunk, await this.chunk(name, chunk)] as const)),
    );
    const found: Lines[Name][] = [];
    numbers.forEach((number, index) => {
      const chunk = places[index] ?? 0;
      const line = loaded.get(chunk)?.[number - this.first(name, chunk)];
      if (line !== undefined) found.push(line);
    });
    return found;
  }

  async #fetch(name: ChunkName, number: number): Promise<unknown[]> {
    const key = keyOf(name, number);
    const { files } = this.#header;
    if (files === null) throw new Error(`the report has no chunk ${key}`);
    const address = `${files}${name}-${String(number).padStart(5, "0")}.js`;
    try {
      await this.#load(address);
    } catch (error) {
      this.#kept.delete(key);
      throw error;
    }
    const lines = this.#arrived.get(key);
    this.#arrived.delete(key);
    if (lines === undefined) {
      this.#kept.delete(key);
      throw new Error(`${address} is damaged`);
    }
    return lines;
  }
}

function keyOf(name: ChunkName, number: number): string {
  return `${name} ${number}`;
}

function loadScript(address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.addEventListener("load", () => {
      script.remove();
      resolve();
    });
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(`${address} is missing: keep the folder of the data beside the page`));
    });
    document.head.append(script);
  });
}
