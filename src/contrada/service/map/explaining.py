"""Why a message matches a subscription, or why not: every constraint with its value, verdict and geometries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from contrada.cql2.queries import bound_predicate
from contrada.formats.wrapping import wrapped_predicate
from contrada.geometry import Circle, Line, Point, Region
from contrada.geometry.globe import globes_of
from contrada.matching.explain import ConstraintExplained, Explanation, explain
from contrada.service.map.filter_shapes import drawn_circle, operator_word, spatial_operator
from contrada.service.map.schemas import (
    ExplainedConstraintView,
    ExplainedFilterView,
    MapExplanation,
    SpatialPart,
)

UNNAMED = "this filter"


def explained(
    filter: Any,
    message: dict[str, Any],
    key: str | None,
    subscriber: str | None,
    wrap: Mapping[str, str] = MappingProxyType({}),
) -> MapExplanation:
    """Explain a message against a filter, which is that of a subscription if there is a key.

    `wrap` says by attribute how regions and points are wrapped, as those of the message are.
    """
    predicate = wrapped_predicate(bound_predicate(filter), globes_of(wrap))
    found = explain(predicate, message, key or UNNAMED, subscriber or "")
    return MapExplanation(
        found.truth is True,
        found.verdict if subscriber is not None else _verdict(found, key),
        key,
        subscriber,
        filter if isinstance(filter, str) else None,
        found.truth,
        found.nearest,
        [ExplainedFilterView(part.truth, list(map(constraint_view, part.constraints))) for part in found.filters],
        None,
        None,
    )


def _verdict(found: Explanation, key: str | None) -> str:
    """Return the verdict without the name of the subscriber; without a key it speaks of "The filter"."""
    whose = "The filter" if key is None else f"{key!r}"
    return found.verdict.replace(f"{found.key!r} of {found.subscriber!r}", whose, 1)


def constraint_view(part: ConstraintExplained) -> ExplainedConstraintView:
    """Return the explanation of one constraint for the page, with both geometries if it is spatial."""
    told = part.to_dict()
    return ExplainedConstraintView(
        told["attribute"], told["asked"], told["value"], part.truth, told["relation"], part.reason, _spatial(part)
    )


def _spatial(part: ConstraintExplained) -> SpatialPart | None:
    constraint = part.constraint
    operator = spatial_operator(constraint)
    if operator is None:
        return None
    word, is_negated = operator_word(operator)
    value = part.value
    found = value.to_geojson() if isinstance(value, Region | Point | Line) else None
    if isinstance(value, Circle):
        found = drawn_circle(value)
    relations = [str(relation) for relation in operator]
    return SpatialPart(word, is_negated, relations, constraint.value.to_geojson(), found)


def note_of(is_true: bool, is_in_log: bool, applies_from: int, sequence: int, is_paused: bool) -> str | None:
    """Return why the log and the filter have different answers; None if they agree.

    >>> note_of(True, False, 9, 4, False)
    'the log has no match: the subscription was put, replaced or resumed later, and applies from message 9 on'
    """
    if is_true == is_in_log:
        return None
    if is_in_log:
        return "the log has a match: the subscription had another filter when the message came"
    if is_paused:
        return "the log has no match: the subscription is paused"
    if sequence < applies_from:
        return (
            "the log has no match: the subscription was put, replaced or resumed later, and applies from message "
            f"{applies_from} on"
        )
    return "the log has no match"
