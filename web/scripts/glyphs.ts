/**
 * Glyphs as MapLibre reads them: signed distance fields of 24 pixels in protocol buffers of 256 code points each, the
 * format of node-fontnik. Distances are computed from the outlines, so no font renderer is needed.
 */
import { readFileSync } from "node:fs";
import opentype from "opentype.js";
import { PbfWriter } from "pbf";

const SIZE = 24; // pixels per em
const MARGIN = 3; // pixels around a glyph
const RADIUS = 8; // pixels over which the distance goes from 0 to 255
const CUTOFF = 0.25; // part of that range which lies inside
const ASCENDER = 26; // pixels; glyphs hang from this line
const CURVE_STEPS = 6;
const LAST_CODE = 0x2c00; // above it no letters of place names follow
const FONT = "Noto Sans Regular";

type Segment = [x1: number, y1: number, x2: number, y2: number];
interface Glyph {
  code: number;
  width: number;
  height: number;
  left: number;
  top: number;
  advance: number;
  bitmap: Uint8Array;
}

/** Read fonts; of several that have a code point the first one counts. */
export function readFonts(files: string[]): Map<number, Glyph> {
  const glyphs = new Map<number, Glyph>();
  for (const file of files) {
    const bytes = readFileSync(file);
    const font = opentype.parse(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
    for (let index = 0; index < font.glyphs.length; index++) {
      const glyph = font.glyphs.get(index);
      for (const code of glyph.unicodes) {
        if (code >= 32 && code < LAST_CODE && !glyphs.has(code)) glyphs.set(code, drawGlyph(code, glyph, font.unitsPerEm));
      }
    }
  }
  return glyphs;
}

function drawGlyph(code: number, glyph: opentype.Glyph, unitsPerEm: number): Glyph {
  const segments = flatten(glyph.getPath(0, 0, SIZE).commands);
  const advance = Math.round(((glyph.advanceWidth ?? 0) * SIZE) / unitsPerEm);
  if (segments.length === 0) {
    return { code, width: 0, height: 0, left: 0, top: 0, advance, bitmap: new Uint8Array(0) };
  }
  const xs = segments.flatMap(([x1, , x2]) => [x1, x2]);
  const ys = segments.flatMap(([, y1, , y2]) => [y1, y2]);
  const left = Math.floor(Math.min(...xs));
  const top = Math.floor(Math.min(...ys)); // y grows downwards
  const width = Math.ceil(Math.max(...xs)) - left;
  const height = Math.ceil(Math.max(...ys)) - top;
  const columns = width + 2 * MARGIN;
  const bitmap = new Uint8Array(columns * (height + 2 * MARGIN));
  for (let index = 0; index < bitmap.length; index++) {
    const x = left - MARGIN + (index % columns) + 0.5;
    const y = top - MARGIN + Math.floor(index / columns) + 0.5;
    const distance = signedDistance(segments, x, y);
    bitmap[index] = Math.round(Math.min(255, Math.max(0, 255 * (1 - CUTOFF - distance / RADIUS))));
  }
  return { code, width, height, left, top: -top - ASCENDER, advance, bitmap };
}

/** Outlines as straight segments. */
function flatten(commands: opentype.PathCommand[]): Segment[] {
  const segments: Segment[] = [];
  let [x, y, startX, startY] = [0, 0, 0, 0];
  const lineTo = (nextX: number, nextY: number) => {
    if (nextX !== x || nextY !== y) segments.push([x, y, nextX, nextY]);
    [x, y] = [nextX, nextY];
  };
  for (const command of commands) {
    if (command.type === "M") [x, y, startX, startY] = [command.x, command.y, command.x, command.y];
    else if (command.type === "L") lineTo(command.x, command.y);
    else if (command.type === "Z") lineTo(startX, startY);
    else {
      const [fromX, fromY] = [x, y];
      for (let step = 1; step <= CURVE_STEPS; step++) {
        const t = step / CURVE_STEPS;
        const at = (p0: number, p1: number, p2: number, p3: number | null) =>
          p3 === null
            ? (1 - t) ** 2 * p0 + 2 * t * (1 - t) * p1 + t ** 2 * p2
            : (1 - t) ** 3 * p0 + 3 * t * (1 - t) ** 2 * p1 + 3 * t ** 2 * (1 - t) * p2 + t ** 3 * p3;
        if (command.type === "Q") {
          lineTo(at(fromX, command.x1, command.x, null), at(fromY, command.y1, command.y, null));
        } else {
          lineTo(at(fromX, command.x1, command.x2, command.x), at(fromY, command.y1, command.y2, command.y));
        }
      }
    }
  }
  return segments;
}

/** Distance of a point to the outline, negative inside by the non-zero rule. */
function signedDistance(segments: Segment[], x: number, y: number): number {
  let squared = Infinity;
  let winding = 0;
  for (const [x1, y1, x2, y2] of segments) {
    const [dx, dy] = [x2 - x1, y2 - y1];
    const t = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy)));
    squared = Math.min(squared, (x - x1 - t * dx) ** 2 + (y - y1 - t * dy) ** 2);
    const side = dx * (y - y1) - dy * (x - x1);
    if (y1 <= y && y2 > y && side > 0) winding++;
    else if (y1 > y && y2 <= y && side < 0) winding--;
  }
  return winding === 0 ? Math.sqrt(squared) : -Math.sqrt(squared);
}

/** Protocol buffers by range, such as "0-255". */
export function encodeGlyphs(glyphs: Map<number, Glyph>): Map<string, Uint8Array> {
  const ranges = new Map<number, Glyph[]>();
  for (const glyph of [...glyphs.values()].sort((a, b) => a.code - b.code)) {
    const range = glyph.code >> 8;
    ranges.set(range, [...(ranges.get(range) ?? []), glyph]);
  }
  return new Map(
    [...ranges].map(([range, members]) => {
      const name = `${range * 256}-${range * 256 + 255}`;
      const pbf = new PbfWriter();
      pbf.writeMessage(1, writeStack, { name, members });
      return [name, pbf.finish()];
    }),
  );
}

function writeStack({ name, members }: { name: string; members: Glyph[] }, pbf: PbfWriter): void {
  pbf.writeStringField(1, FONT);
  pbf.writeStringField(2, name);
  for (const member of members) pbf.writeMessage(3, writeGlyph, member);
}

function writeGlyph(glyph: Glyph, pbf: PbfWriter): void {
  pbf.writeVarintField(1, glyph.code);
  if (glyph.bitmap.length > 0) pbf.writeBytesField(2, glyph.bitmap);
  pbf.writeVarintField(3, glyph.width);
  pbf.writeVarintField(4, glyph.height);
  pbf.writeSVarintField(5, glyph.left);
  pbf.writeSVarintField(6, glyph.top);
  pbf.writeVarintField(7, glyph.advance);
}
