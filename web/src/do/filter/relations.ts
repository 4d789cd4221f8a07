/** The eight relations between two regions, the sets of them that CQL2 has names for, and both in plain words. */

export const RELATIONS = [
  "disjoint",
  "meets",
  "overlaps",
  "equals",
  "inside",
  "contains",
  "covers",
  "covered-by",
] as const;

export type Relation = (typeof RELATIONS)[number];

/** What a relation of a message's region `a` to the subscription's region `b` says, as the end of "the message ...". */
export const RELATION_PHRASES: Record<Relation, string> = {
  disjoint: "is apart from the region",
  meets: "touches the region at its boundary only",
  overlaps: "overlaps the region: each has a part outside the other",
  equals: "is the same as the region",
  inside: "lies inside the region, clear of its boundary",
  contains: "contains the region, clear of its own boundary",
  covers: "contains the region and touches its own boundary with it",
  "covered-by": "lies inside the region and touches its boundary",
};

/** Sets that CQL2 names, in the order in which the server prefers the names. */
const NAMED_SETS: readonly (readonly [string, readonly Relation[]])[] = [
  ["s_intersects", RELATIONS.filter((relation) => relation !== "disjoint")],
  ["s_disjoint", ["disjoint"]],
  ["s_equals", ["equals"]],
  ["s_touches", ["meets"]],
  ["s_overlaps", ["overlaps"]],
  ["s_within", ["equals", "inside", "covered-by"]],
  ["s_contains", ["equals", "contains", "covers"]],
];

export function isRelation(name: unknown): name is Relation {
  return (RELATIONS as readonly unknown[]).includes(name);
}

/** Return relations once each, in the order of `RELATIONS`. */
export function sortedRelations(relations: Iterable<Relation>): Relation[] {
  const chosen = new Set(relations);
  return RELATIONS.filter((relation) => chosen.has(relation));
}

export function complement(relations: Iterable<Relation>): Relation[] {
  const chosen = new Set(relations);
  return RELATIONS.filter((relation) => !chosen.has(relation));
}

/**
 * Return the function of CQL2 that stands for a set of relations, in lower case, or null where there is none.
 *
 * OGC's name comes first, as the server writes it: `["meets"]` is `s_touches`.
 */
export function relationWord(relations: Iterable<Relation>): string | null {
  const sorted = sortedRelations(relations);
  const named = NAMED_SETS.find(([, members]) => sameRelations(sortedRelations(members), sorted));
  if (named) return named[0];
  const [only, ...others] = sorted;
  return only !== undefined && others.length === 0 ? only.replace("-", "_") : null;
}

/** Return the relations that a function of CQL2 stands for, or null if it is not a relation. */
export function relationsOfWord(word: string): Relation[] | null {
  const lower = word.toLowerCase();
  const named = NAMED_SETS.find(([name]) => name === lower);
  if (named) return sortedRelations(named[1]);
  const single = lower.replace("_", "-");
  return isRelation(single) ? [single] : null;
}

function sameRelations(a: readonly Relation[], b: readonly Relation[]): boolean {
  return a.length === b.length && a.every((relation, k) => relation === b[k]);
}

/** Choices of the form that cover most questions, with their sets; any other set is chosen relation by relation. */
export const RELATION_CHOICES: readonly { word: string; label: string }[] = [
  { word: "s_intersects", label: "touches or overlaps it (intersects)" },
  { word: "s_within", label: "lies within it" },
  { word: "s_contains", label: "contains it" },
  { word: "s_overlaps", label: "overlaps it partly" },
  { word: "s_touches", label: "only touches it" },
  { word: "s_equals", label: "equals it" },
  { word: "s_disjoint", label: "is apart from it" },
];
