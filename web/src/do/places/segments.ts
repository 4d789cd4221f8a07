/** Where two outlines touch, and the gap between two that do not: for pictures, with a tolerance, never for verdicts. */

import type { Place } from "../filter/model.ts";

export type Xy = [number, number];
type Segment = [Xy, Xy];

/** Pairs of segments that one picture looks at; larger outlines are drawn without contacts. */
const MOST_PAIRS = 4_000_000;

export function polygonsOf(place: Place): GeoJSON.Position[][][] {
  return place.type === "Point" ? [] : place.type === "Polygon" ? [place.coordinates] : place.coordinates;
}

/** Return the segments of all rings; a point is a segment of no length. */
export function segmentsOf(place: Place): Segment[] {
  if (place.type === "Point") return [[xy(place.coordinates), xy(place.coordinates)]];
  return polygonsOf(place)
    .flat()
    .flatMap((ring) => ring.slice(1).map((end, k): Segment => [xy(ring[k] ?? end), xy(end)]));
}

function xy(position: GeoJSON.Position): Xy {
  return [position[0] ?? NaN, position[1] ?? NaN];
}

export interface Contacts {
  points: Xy[];
  lines: Segment[];
}

/** Return the points and stretches at which two outlines touch or run along each other; crossings are left out. */
export function contactsOf(a: Place, b: Place): Contacts {
  const found: Contacts = { points: [], lines: [] };
  const [first, second] = [segmentsOf(a), segmentsOf(b)];
  if (first.length * second.length > MOST_PAIRS) return found;
  const tolerance = sizeOf([...first, ...second]) * 1e-9;
  for (const one of first) {
    for (const other of second) {
      if (areApart(one, other, tolerance)) continue;
      collect(one, other, tolerance, found);
    }
  }
  found.points = onceEach(found.points, tolerance).filter(
    (point) => !found.lines.some((line) => distanceTo(point, line).distance <= tolerance),
  );
  return found;
}

function collect(one: Segment, other: Segment, tolerance: number, found: Contacts): void {
  const touching = [
    ...other.filter((end) => distanceTo(end, one).distance <= tolerance),
    ...one.filter((end) => distanceTo(end, other).distance <= tolerance),
  ];
  const ends = onceEach(touching, tolerance);
  const [start, end] = ends;
  if (start === undefined) return;
  // Two different touching ends mean that the segments run along each other between them.
  if (end !== undefined) found.lines.push([start, end]);
  else found.points.push(start);
}

/** Return the shortest line between two outlines, or null if they are too large to search. */
export function gapBetween(a: Place, b: Place): Segment | null {
  const [first, second] = [segmentsOf(a), segmentsOf(b)];
  if (first.length * second.length > MOST_PAIRS) return null;
  let best: Segment | null = null;
  let least = Infinity;
  const consider = (point: Xy, segment: Segment, turn: boolean) => {
    const { distance, nearest } = distanceTo(point, segment);
    if (distance < least) {
      least = distance;
      best = turn ? [nearest, point] : [point, nearest];
    }
  };
  for (const one of first) {
    for (const other of second) {
      consider(one[0], other, false);
      consider(other[0], one, true);
    }
  }
  return best;
}

export function distanceTo(point: Xy, [start, end]: Segment): { distance: number; nearest: Xy } {
  const [dx, dy] = [end[0] - start[0], end[1] - start[1]];
  const length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / length;
  const part = Math.min(1, Math.max(0, t));
  const nearest: Xy = part === 1 ? end : [start[0] + part * dx, start[1] + part * dy];
  return { distance: Math.hypot(point[0] - nearest[0], point[1] - nearest[1]), nearest };
}

function areApart([a, b]: Segment, [c, d]: Segment, tolerance: number): boolean {
  return [0, 1].some((k) => {
    const axis = k as 0 | 1;
    return (
      Math.max(a[axis], b[axis]) < Math.min(c[axis], d[axis]) - tolerance ||
      Math.max(c[axis], d[axis]) < Math.min(a[axis], b[axis]) - tolerance
    );
  });
}

function onceEach(points: Xy[], tolerance: number): Xy[] {
  const kept: Xy[] = [];
  for (const point of points) {
    if (!kept.some((other) => Math.hypot(point[0] - other[0], point[1] - other[1]) <= tolerance)) kept.push(point);
  }
  return kept;
}

function sizeOf(segments: Segment[]): number {
  const points = segments.flat();
  const span = (axis: 0 | 1) => {
    let [least, most] = [Infinity, -Infinity];
    for (const point of points) [least, most] = [Math.min(least, point[axis]), Math.max(most, point[axis])];
    return most - least;
  };
  return Math.max(span(0), span(1), Number.MIN_VALUE);
}
