"""OGC's spatial words in CQL2 text against Shapely's predicates; where they differ, the judge decides."""

import numpy as np
import pytest
import shapely

import contrada as ct
from generators.messy import messy_regions
from oracles.relations import judge, wkt

WORDS = {
    "S_INTERSECTS": shapely.intersects, "S_DISJOINT": shapely.disjoint, "S_EQUALS": shapely.equals,
    "S_TOUCHES": shapely.touches, "S_OVERLAPS": shapely.overlaps, "S_WITHIN": shapely.within,
    "S_CONTAINS": shapely.contains,
}  # fmt: skip


def is_right(word, message, asked, answer):
    """Whether an answer is right, by rational arithmetic."""
    return (ct.Relation(judge(message, asked)) in getattr(ct.RelationSet, word)) == answer


@pytest.mark.parametrize("seed", range(4))
def test_words_mean_what_they_mean_to_shapely(seed):
    rng = np.random.default_rng(seed)
    made = messy_regions(rng, 200)
    shapes = made[shapely.is_valid(made)]
    asked, messages = shapes[:40], shapes[40:80]
    table = ct.ForwardingTable()
    for number, shape in enumerate(asked):
        text = wkt(shape)
        for word in WORDS:
            table.subscribe("someone", f"{word}(area, {text}) AND kind = 'a'", key=f"{word} {number}")
            table.subscribe("someone", f"NOT {word}(area, {text}) AND kind = 'b'", key=f"NOT {word} {number}")
    settled = 0
    for message in messages:
        region = ct.Region.from_shapely(message)
        found = table.match_keys({"area": region, "kind": "a"})
        contrary = table.match_keys({"area": region, "kind": "b"})
        for word, predicate in WORDS.items():
            for number, theirs in enumerate(predicate(message, asked).tolist()):
                ours = f"{word} {number}" in found
                assert (f"NOT {word} {number}" in contrary) is not ours
                if ours != theirs:
                    settled += 1
                    assert is_right(word, message, asked[number], ours), (word, message.wkt, asked[number].wkt)
    assert settled < len(messages) * len(asked) * len(WORDS) / 100  # GEOS is wrong now and then, not often
