"""Wrap the regions and points of subscriptions at the date line, as those of messages are."""

from __future__ import annotations

from collections.abc import Mapping

from contrada.errors import ContradaError, CrsError, FilterError
from contrada.formats.spatial import Spatial
from contrada.geometry import Point, Region
from contrada.geometry.globe import Globe
from contrada.model import Constraint, Filter, Predicate
from contrada.model.operators import Column


def wrapped_predicate(predicate: Predicate, globes: Mapping[str, Globe]) -> Predicate:
    """Return a predicate whose regions and points of attributes in `globes` are wrapped; the same if none changes.

    >>> from contrada.cql2 import parse
    >>> print(wrapped_predicate(parse("S_WITHIN(at, POINT (190 5)) AND n > 3"), {"at": Globe("longitude")}))
    S_WITHIN(at, POINT (-170 5)) AND n > 3
    """
    if not globes:
        return predicate
    spatial, is_same = Spatial(globes=globes), True
    filters = []
    for part in predicate:
        constraints = [_wrapped(constraint, spatial) for constraint in part]
        is_same &= all(new is old for new, old in zip(constraints, part, strict=True))
        filters.append(Filter(constraints))
    return predicate if is_same else Predicate(filters)


def _wrapped(constraint: Constraint, spatial: Spatial) -> Constraint:
    """Return a constraint with its region or point wrapped if its attribute is."""
    name, value = constraint.attribute, constraint.value
    if name not in spatial.globes or not constraint.is_spatial or not isinstance(value, Region | Point):
        return constraint
    try:
        new = spatial.at(name).changed(value)
    except ContradaError as error:
        kind = CrsError if isinstance(error, CrsError) else FilterError
        raise kind(f"constraint on {name!r}: {error}") from error
    return constraint if new is value else Constraint(name, constraint.operator, new)


def column_globes(template: Predicate, globes: Mapping[str, Globe]) -> dict[str, Globe]:
    """Return how the columns of a template are wrapped: as the attribute that each is compared with.

    A column that is compared with attributes of different modes is a FilterError.

    >>> from contrada.cql2 import parse
    >>> column_globes(parse("S_INTERSECTS(area, $geometry) AND n > $least"), {"area": Globe("longitude")})
    {'geometry': Globe(wrap='longitude', densify=None)}
    """
    if not globes:
        return {}
    found: dict[str, tuple[str, Globe | None]] = {}
    for constraint in (one for part in template for one in part):
        name, value = constraint.attribute, constraint.value
        if not constraint.is_spatial or not isinstance(value, Column):
            continue
        other, globe = found.setdefault(value.name, (name, globes.get(name)))
        if globe != globes.get(name):
            raise FilterError(
                f"column {value.name!r} is compared with {other!r} and {name!r}, which are wrapped in different ways;"
                " give each a column of its own"
            )
    return {name: globe for name, (_, globe) in found.items() if globe is not None}
