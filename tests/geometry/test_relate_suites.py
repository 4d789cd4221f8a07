"""The cases of relate that GEOS and JTS are tested with; where a suite is wrong, the rationals decide."""

import pytest
import shapely

import contrada as ct
from contrada.geometry.reading import shape_of as read
from fetched_programs import NoProgramError
from oracles.matrix import matrix_rational, shape_of
from relate_suites import PACKAGES, cases, suite

KINDS = ("Point", "LineString", "LinearRing", "MultiLineString", "Polygon", "MultiPolygon")


def geometry(text):
    return shapely.from_wkt(text) if "(" in text or "EMPTY" in text else shapely.from_wkb(text)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_the_suite_of(package):
    try:
        archive = suite(package)
    except NoProgramError as error:
        pytest.skip(f"the sources of {package} cannot be fetched here: {error}")
    tried, differ = 0, []
    for case in cases(archive):
        try:
            pair = [geometry(text) for text in (case.a, case.b)]
            shapes = [read(value) for value in pair if value.geom_type in KINDS]
        except (ct.ContradaError, shapely.errors.ShapelyError):  # empty, invalid, or of a type that is no value
            continue
        if len(shapes) < 2:
            continue
        tried += 1
        found = ct.de9im(*shapes)
        if found != case.matrix:
            differ.append((case, found))
    for case, found in differ:
        assert found == matrix_rational(*(shape_of(geometry(text)) for text in (case.a, case.b))), case
    print(f"{package}: {tried} cases, {len(differ)} of them wrong in the suite: {[case.name for case, _ in differ]}")
    assert tried > 100
    assert len(differ) <= 5
