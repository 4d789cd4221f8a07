"""The check of what a neighbour is told finds what is missing, stale, covered or too wide."""

import pytest

from contrada import parse
from contrada.broker import LinkOptions
from oracles.routing_tables import check_told

MERGING = LinkOptions(mode="merging", share=0.2)
WITHDRAW = LinkOptions(withdraw=True)
INTERESTS = {
    1: parse("S_WITHIN(area, BBOX(0, 0, 1, 2)) AND size > 3"),
    2: parse("S_INTERSECTS(area, BBOX(1, 0, 2, 2)) AND size > 3"),
    3: parse("S_INTERSECTS(area, BBOX(1, 0, 2, 1)) AND size > 4"),
}
BOTH = parse("S_INTERSECTS(area, BBOX(0, 0, 2, 2)) AND size > 3")
GOOD = [
    ({9: BOTH}, MERGING),
    ({1: INTERESTS[1], 2: INTERESTS[2]}, MERGING),
    ({1: INTERESTS[1], 9: INTERESTS[2]}, MERGING),
    ({1: INTERESTS[1], 2: INTERESTS[2]}, WITHDRAW),
    (INTERESTS, LinkOptions()),
    (INTERESTS, LinkOptions(mode="flooding")),
]
BAD = {
    "an interest is missing": ({1: INTERESTS[1]}, WITHDRAW),
    "one is covered": (INTERESTS, WITHDRAW),
    "one is not told by flooding": ({1: INTERESTS[1], 2: INTERESTS[2]}, LinkOptions(mode="flooding")),
    "merged without merging": ({9: BOTH}, WITHDRAW),
    "another predicate": ({1: BOTH, 2: INTERESTS[2]}, LinkOptions()),
    "a merged one is too wide": ({9: parse("S_INTERSECTS(area, BBOX(0, 0, 3, 2)) AND size > 3")}, MERGING),
    "a merged one has another constraint": ({9: parse("S_INTERSECTS(area, BBOX(0, 0, 2, 2)) AND size > 2")}, MERGING),
    "a merged one holds no interest": (
        {9: BOTH, 8: parse("S_INTERSECTS(area, BBOX(8, 8, 9, 9)) AND size > 3")},
        MERGING,
    ),
    "a merged one misses an interest": ({9: parse("S_INTERSECTS(area, BBOX(1, 0, 2, 2)) AND size > 3")}, MERGING),
}


@pytest.mark.parametrize(("told", "options"), GOOD)
def test_what_the_definition_allows_passes(told, options):
    check_told(told, INTERESTS, options)


@pytest.mark.parametrize("case", BAD)
def test_what_it_forbids_is_found(case):
    told, options = BAD[case]
    with pytest.raises(AssertionError):
        check_told(told, INTERESTS, options)
