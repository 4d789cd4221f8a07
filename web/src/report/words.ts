/** Numbers and times in words. */
const NUMBERS = new Intl.NumberFormat("en-US");
const TIMES = new Intl.DateTimeFormat("en-GB", {
  year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZone: "UTC",
}); // prettier-ignore

export function countOf(value: number): string {
  return NUMBERS.format(value);
}

export function matchesOf(count: number): string {
  return `${countOf(count)} ${count === 1 ? "match" : "matches"}`;
}

/** Milliseconds since 1970 as a time in UTC; beyond what a date can be, the number itself. */
export function timeOf(milliseconds: number): string {
  return Math.abs(milliseconds) <= 8.64e15 ? `${TIMES.format(milliseconds)} UTC` : String(milliseconds);
}
