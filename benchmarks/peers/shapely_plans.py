"""The best plans that we know for Shapely: an STRtree per operator or one tree, prepared predicates, few candidates."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import shapely

import contrada as ct
from benchmarks.answers import Answer
from benchmarks.peers.geos import Geometries, relation_codes
from benchmarks.polygons import Operators, first_vertices

Rows = npt.NDArray[np.int64]
PATTERNS = {  # of (message, polygon), for polygons whose boundary or interior the message's boundary is known to reach
    ct.Relation.MEETS: "F***T****",
    ct.Relation.OVERLAPS: "T*T***T**",
    ct.Relation.INSIDE: "TFFTFF***",
    ct.Relation.COVERS: "T*T*T*F**",
    ct.Relation.COVERED_BY: "T*F*TFT**",
}


def prepared(wkb: bytes) -> shapely.Geometry:
    """Return a message with the index that GEOS builds for repeated predicates."""
    message = shapely.from_wkb(wkb)
    shapely.prepare(message)
    return message


class OneTree:
    """All polygons in one tree; the relation of each candidate is read off its DE-9IM matrix."""

    name = "Shapely: one STRtree, prepared relate"

    def __init__(self, shapes: Geometries, operators: Operators) -> None:
        self.shapes, self.operators = shapes, operators
        self.tree = shapely.STRtree(shapes)
        self.is_disjoint = operators == ct.Relation.DISJOINT

    def match(self, wkb: bytes) -> Answer:
        """Return rows for one message."""
        message = prepared(wkb)
        near = self.tree.query(message)
        codes = relation_codes(shapely.relate(message, self.shapes[near]))
        far = self.is_disjoint.copy()
        far[near] = False
        return np.concatenate([np.flatnonzero(far), near[codes == self.operators[near]]])


class TreePerOperator:
    """A tree for each operator, and the cheapest exact prepared predicate for it."""

    name = "Shapely: STRtree per operator, prepared predicates"

    def __init__(self, shapes: Geometries, operators: Operators) -> None:
        self.rows = [np.flatnonzero(operators == relation) for relation in ct.Relation]
        self.shapes = [shapes[rows] for rows in self.rows]
        self.trees = [shapely.STRtree(group) for group in self.shapes]
        self.bounds = [shapely.bounds(group) for group in self.shapes]

    def match(self, wkb: bytes) -> Answer:
        """Return rows for one message."""
        message = prepared(wkb)
        return np.concatenate([self.rows[r][self.matching(r, message)] for r in ct.Relation])

    def matching(self, relation: ct.Relation, message: shapely.Geometry) -> Rows:
        """Return rows within the operator's group."""
        tree, shapes = self.trees[relation], self.shapes[relation]
        if relation is ct.Relation.DISJOINT:
            return complement(tree.query(message, "intersects"), len(shapes))
        if relation is ct.Relation.CONTAINS:
            return tree.query(message, "contains_properly")
        if relation in (ct.Relation.EQUALS, ct.Relation.INSIDE, ct.Relation.COVERED_BY):
            return self.around(relation, message)
        near = tree.query(message, "covers" if relation is ct.Relation.COVERS else "intersects")
        near = near[~shapely.contains_properly(message, shapes[near])]
        return near[self.refine(relation, message, shapes[near])]

    def refine(self, relation: ct.Relation, message: shapely.Geometry, shapes: Geometries) -> npt.NDArray[np.bool_]:
        """Return which of the few candidates stand in the relation."""
        return shapely.relate_pattern(message, shapes, PATTERNS[relation])

    def around(self, relation: ct.Relation, message: shapely.Geometry) -> Rows:
        """Return polygons whose boxes hold the message's and that equal, hold or cover it."""
        box, bounds = np.array(message.bounds), self.bounds[relation]
        if relation is ct.Relation.EQUALS:
            near = np.flatnonzero((bounds == box).all(axis=1))
            return near[shapely.equals(message, self.shapes[relation][near])]
        low, high = bounds[:, :2] <= box[:2], bounds[:, 2:] >= box[2:]
        near = np.flatnonzero(low[:, 0] & low[:, 1] & high[:, 0] & high[:, 1])
        return near[shapely.relate_pattern(message, self.shapes[relation][near], PATTERNS[relation])]


class TreePerOperatorPredicates(TreePerOperator):
    """The same with named predicates in place of patterns, where there is one."""

    name = "Shapely: STRtree per operator, named predicates"

    def refine(self, relation: ct.Relation, message: shapely.Geometry, shapes: Geometries) -> npt.NDArray[np.bool_]:
        """Return which of the few candidates stand in the relation."""
        named = {ct.Relation.MEETS: shapely.touches, ct.Relation.OVERLAPS: shapely.overlaps}.get(relation)
        return named(message, shapes) if named else super().refine(relation, message, shapes)


class BoundaryFirst(TreePerOperator):
    """A cleverer plan: exact predicates only for polygons that the message's boundary reaches.

    Those are found by querying the trees with the message's sides. Every other polygon lies within the message or
    apart from it as a whole, so one vertex decides it. Holes of polygons do not matter; messages have none.
    """

    name = "Shapely: STRtree per operator queried by sides, one vertex for the rest"

    def __init__(self, shapes: Geometries, operators: Operators) -> None:
        super().__init__(shapes, operators)
        self.vertices = [first_vertices(group) for group in self.shapes]

    def match(self, wkb: bytes) -> Answer:
        """Return rows for one message."""
        message = prepared(wkb)
        ring = shapely.get_coordinates(message)
        sides = shapely.linestrings(np.stack([ring[:-1], ring[1:]], axis=1))
        return np.concatenate([self.rows[r][self.reached(r, message, sides)] for r in ct.Relation])

    def reached(self, relation: ct.Relation, message: shapely.Geometry, sides: Geometries) -> Rows:
        """Return rows within the operator's group."""
        if relation in (ct.Relation.EQUALS, ct.Relation.INSIDE, ct.Relation.COVERED_BY):
            return self.around(relation, message)
        tree = self.trees[relation]
        if relation in (ct.Relation.DISJOINT, ct.Relation.CONTAINS):
            is_apart = np.ones(len(self.shapes[relation]), bool)
            is_apart[tree.query(sides, "intersects")[1]] = False
            near = tree.query(message)
            near = near[is_apart[near]]
            vertices = self.vertices[relation][near]
            within = near[shapely.contains_xy(message, vertices[:, 0], vertices[:, 1])]
            if relation is ct.Relation.CONTAINS:
                return within
            is_apart[within] = False
            return np.flatnonzero(is_apart)
        crossed = np.unique(tree.query(sides, "intersects")[1])
        return crossed[self.refine(relation, message, self.shapes[relation][crossed])]


PLANS = (OneTree, TreePerOperator, TreePerOperatorPredicates, BoundaryFirst)


def complement(rows: Rows, count: int) -> Rows:
    """Return all rows below `count` that are not among `rows`."""
    is_other = np.ones(count, bool)
    is_other[rows] = False
    return np.flatnonzero(is_other)


# How a tree is asked for one relation of small messages and points: a predicate, and a pattern for what it finds.
SINGLE_PLANS: dict[ct.Relation, tuple[str, str | None]] = {
    ct.Relation.MEETS: ("touches", None),
    ct.Relation.OVERLAPS: ("overlaps", None),
    ct.Relation.EQUALS: ("covered_by", "T*F**FF**"),
    ct.Relation.INSIDE: ("within", "T*F*FF***"),
    ct.Relation.CONTAINS: ("contains_properly", None),
    ct.Relation.COVERS: ("covers", "T*T*T*F**"),
    ct.Relation.COVERED_BY: ("covered_by", "T*F*TFT**"),
}


def single_plan(shapes: Geometries, relations: ct.Relation | ct.RelationSet) -> Callable[[bytes], Answer]:
    """Return one STRtree for one relation (or S_INTERSECTS) of small messages and points."""
    tree = shapely.STRtree(shapes)
    relation = relations if isinstance(relations, ct.Relation) else None
    predicate, pattern = SINGLE_PLANS.get(relation, ("intersects", None))  # also for what is not disjoint

    def ask(wkb: bytes) -> Answer:
        message = shapely.from_wkb(wkb)
        rows = tree.query(message, predicate)
        if pattern is None or not len(rows):
            return rows
        return rows[shapely.relate_pattern(message, shapes[rows], pattern)]

    return (lambda wkb: complement(ask(wkb), len(shapes))) if relation is ct.Relation.DISJOINT else ask
