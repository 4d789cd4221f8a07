/**
 * Read WKT, `BBOX(xmin, ymin, xmax, ymax)` of CQL2, or plain coordinates, into a region or point.
 *
 * The WKT packages of npm answer bad text with null or with no position; people who type a region need the position.
 */

import { checkPosition, ReadError, type PlaceLimits } from "../places/checks.ts";
import type { Place } from "../filter/model.ts";
import { boxPolygon } from "../filter/json.ts";

interface Token {
  text: string;
  at: number;
}

const TOKEN = /[A-Za-z]+|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[(),;=]|\S/g;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const OTHERS = ["LINESTRING", "MULTILINESTRING", "MULTIPOINT", "GEOMETRYCOLLECTION", "LINEARRING", "CIRCULARSTRING"];

/** Return the place that text describes; an error names line and column. */
export function readWkt(text: string, limits: PlaceLimits): Place {
  const reader = new WktReader(text, limits);
  return /^\s*[A-Za-z]/.test(text) ? reader.tagged() : reader.coordinates();
}

class WktReader {
  private readonly text: string;
  private readonly limits: PlaceLimits;
  private readonly tokens: Token[];
  private place = 0;

  constructor(text: string, limits: PlaceLimits) {
    this.text = text;
    this.limits = limits;
    this.tokens = [...text.matchAll(TOKEN)].map((match) => ({ text: match[0], at: match.index }));
  }

  /** Read `POLYGON ((...))` and its like, to the end of the text. */
  tagged(): Place {
    this.skipSrid();
    const start = this.peek();
    const tag = this.next("POINT, POLYGON, MULTIPOLYGON or BBOX").toUpperCase();
    if (OTHERS.includes(tag)) {
      throw this.error(start, `${tag} is not supported: draw a POINT, POLYGON or MULTIPOLYGON`);
    }
    const found = this.body(tag, start);
    this.end();
    return found;
  }

  /** Read coordinates without a tag: a point, a box of four numbers in one row, or the corners of a polygon. */
  coordinates(): Place {
    const rows = this.rows();
    const [first] = rows;
    if (first === undefined) throw this.error(undefined, "type coordinates, WKT, or BBOX(xmin, ymin, xmax, ymax)");
    if (rows.length === 1 && first.length === 4) return this.box(first);
    const bad = rows.findIndex((row) => row.length !== 2);
    if (bad >= 0) {
      throw new ReadError(`line ${String(bad + 1)}`, `need two numbers, x and y; got ${String(rows[bad]?.length)}`);
    }
    const corners = rows as [number, number][];
    corners.forEach((corner, k) => checkPosition(corner, `line ${k + 1}`, this.limits));
    if (corners.length === 1) return { type: "Point", coordinates: corners[0] ?? [] };
    return { type: "Polygon", coordinates: [closed(corners)] };
  }

  /** Numbers of each line that is not empty; `;` ends a line too. */
  private rows(): number[][] {
    const rows: number[][] = [];
    let line = -1;
    let separated = true;
    for (const token of this.tokens) {
      if (token.text === ";") {
        separated = true;
        continue;
      }
      if (token.text === ",") continue;
      if (!NUMBER.test(token.text)) throw this.error(token, `expected a number, got "${token.text}"`);
      const own = this.lineOf(token.at);
      if (own !== line || separated) rows.push([]);
      [line, separated] = [own, false];
      rows.at(-1)?.push(Number(token.text));
    }
    const open = rows.length < 3 && rows.length > 1;
    if (open) throw new ReadError("", "a polygon needs at least three corners, one on each line");
    return rows;
  }

  private body(tag: string, start: Token | undefined): Place {
    if (tag === "BBOX") return this.box(this.list(() => this.number()));
    this.skipDimensions();
    switch (tag) {
      case "POINT": {
        this.expect("(");
        const coordinates = this.position();
        this.expect(")");
        return { type: "Point", coordinates };
      }
      case "POLYGON":
        return { type: "Polygon", coordinates: this.list(() => this.ring()) };
      case "MULTIPOLYGON":
        return { type: "MultiPolygon", coordinates: this.list(() => this.list(() => this.ring())) };
      default:
        throw this.error(start, `expected POINT, POLYGON, MULTIPOLYGON or BBOX, got "${tag}"`);
    }
  }

  private box(corners: number[]): GeoJSON.Polygon {
    const [xmin, ymin, xmax, ymax] = corners;
    if (corners.length !== 4 || xmin === undefined || ymin === undefined || xmax === undefined || ymax === undefined) {
      throw new ReadError("BBOX", `need four numbers xmin, ymin, xmax, ymax; got ${corners.length}`);
    }
    if (xmin >= xmax || ymin >= ymax) throw new ReadError("BBOX", "need xmin < xmax and ymin < ymax");
    checkPosition([xmin, ymin], "BBOX", this.limits);
    checkPosition([xmax, ymax], "BBOX", this.limits);
    return boxPolygon(xmin, ymin, xmax, ymax);
  }

  private ring(): [number, number][] {
    const start = this.peek();
    const ring = this.list(() => this.position());
    const [first, last] = [ring[0], ring.at(-1)];
    if (ring.length < 4) throw this.error(start, `a ring needs at least four positions, got ${ring.length}`);
    if (first?.[0] !== last?.[0] || first?.[1] !== last?.[1]) {
      throw this.error(start, "the ring is not closed: its last position differs from its first");
    }
    return ring;
  }

  private list<T>(item: () => T): T[] {
    this.expect("(");
    const items = [item()];
    while (this.peek()?.text === ",") {
      this.place += 1;
      items.push(item());
    }
    this.expect(")", ", or )");
    return items;
  }

  /** Read x and y; Z and M are dropped. */
  private position(): [number, number] {
    const start = this.peek();
    const numbers: number[] = [];
    while (this.peek() !== undefined && NUMBER.test(this.peek()?.text ?? "")) numbers.push(this.number());
    if (numbers.length < 2 || numbers.length > 4) {
      throw this.error(start, `expected x and y, got ${numbers.length} numbers`);
    }
    return checkPosition(numbers, this.where(start), this.limits);
  }

  private number(): number {
    const token = this.peek();
    if (token === undefined || !NUMBER.test(token.text)) throw this.error(token, `expected a number${got(token)}`);
    this.place += 1;
    return Number(token.text);
  }

  private skipSrid(): void {
    if (this.peek()?.text.toUpperCase() !== "SRID") return;
    this.place += 1;
    this.expect("=");
    const at = this.peek();
    const code = this.number();
    if (code !== 4326) throw this.error(at, `SRID ${code} is not supported: the map draws longitude and latitude`);
    this.expect(";");
  }

  private skipDimensions(): void {
    const word = this.peek();
    if (word !== undefined && /^(ZM?|M)$/i.test(word.text)) this.place += 1;
    if (this.peek()?.text.toUpperCase() === "EMPTY") throw this.error(this.peek(), "an empty geometry cannot be drawn");
  }

  private end(): void {
    const token = this.peek();
    if (token !== undefined) throw this.error(token, `expected the end, got "${token.text}"`);
  }

  private peek(): Token | undefined {
    return this.tokens[this.place];
  }

  private next(expected: string): string {
    const token = this.peek();
    if (token === undefined) throw this.error(token, `expected ${expected}`);
    this.place += 1;
    return token.text;
  }

  private expect(symbol: string, expected = symbol): void {
    const token = this.peek();
    if (token?.text !== symbol) throw this.error(token, `expected ${expected}${got(token)}`);
    this.place += 1;
  }

  private error(token: Token | undefined, what: string): ReadError {
    return new ReadError(this.where(token), what);
  }

  private where(token: Token | undefined): string {
    const at = token?.at ?? this.text.trimEnd().length;
    const start = this.text.lastIndexOf("\n", at - 1) + 1;
    return `line ${String(this.lineOf(at))}, column ${String(at - start + 1)}`;
  }

  private lineOf(at: number): number {
    return this.text.slice(0, at).split("\n").length;
  }
}

function got(token: Token | undefined): string {
  return token === undefined ? "; the text ends here" : `, got "${token.text}"`;
}

function closed(corners: [number, number][]): [number, number][] {
  const [first, last] = [corners[0], corners.at(-1)];
  const isClosed = corners.length > 3 && first?.[0] === last?.[0] && first?.[1] === last?.[1];
  return isClosed || first === undefined ? corners : [...corners, first];
}
