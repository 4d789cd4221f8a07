"""Subscriptions as the map shows them."""

from __future__ import annotations

from contrada.errors import ContradaError
from contrada.service.http.schemas import instant
from contrada.service.map.filter_shapes import FilterShapeReader, FilterShapes
from contrada.service.map.schemas import MapSubscription
from contrada.service.map.viewers import Viewer
from contrada.service.views import SubscriptionView


def subscription_view(view: SubscriptionView, reader: FilterShapeReader, viewer: Viewer) -> MapSubscription:
    """Return a subscription for a viewer."""
    definition = view.definition
    found = shapes_within(view, reader)
    track = definition.track
    return MapSubscription(
        view.key,
        definition.subscriber if viewer.shows_subscribers else None,
        view.filter if viewer.shows_filters else None,
        definition.is_paused,
        definition.on if track is None else list(track.on),
        None if track is None else track.track,
        definition.applies_from,
        instant(definition.created),
        None if definition.expires is None else instant(definition.expires),
        [shape.view(viewer.simplify) for shape in found.shapes],
        found.conditions if viewer.shows_filters else None,
        found.bounds,
    )


def shapes_within(view: SubscriptionView, reader: FilterShapeReader) -> FilterShapes:
    """Return the shapes of a subscription; none if its filter uses what this process does not know."""
    try:
        return reader.read(view.filter)
    except ContradaError:  # such as an operator of a registered type that is not registered here
        return FilterShapes((), "")
