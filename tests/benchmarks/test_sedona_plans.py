"""What benchmarks.sedona reads from plans, and that its SQL asks for our relations; neither Sedona nor a network."""

import re
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
import shapely

from oracles.relations import NAMES, judge

plans = SimpleNamespace(**run_path(str(Path(__file__).parents[2] / "benchmarks" / "sedona" / "plans.py")))

INDEXED = """\
AdaptiveSparkPlan isFinalPlan=false
+- Project [message_id#12L, key#14L]
   +- BroadcastIndexJoin b#18: geometry, LeftSide, LeftSide, Inner, INTERSECTS ST_INTERSECTS(a#16, b#18)
      :- SpatialIndex a#16: geometry, RTREE, false, false
      :  +- Filter isnotnull(a#16)
"""
RANGE = """\
AdaptiveSparkPlan isFinalPlan=false
+- Project [message_id#12L, key#14L]
   +- RangeJoin a#16: geometry, b#18: geometry, EQUALS
      :- Filter isnotnull(a#16)
"""
CARTESIAN = """\
AdaptiveSparkPlan isFinalPlan=false
+- Project [message_id#12L, key#14L]
   +- CartesianProduct NOT  **org.apache.spark.sql.sedona_sql.expressions.ST_Intersects**
      :- Filter isnotnull(a#16)
      :  +- InMemoryTableScan [message_id#12L, a#16], [isnotnull(a#16)]
      :        +- InMemoryRelation [message_id#12L, a#16], StorageLevel(disk, memory, deserialized, 1 replicas)
      :              +- BroadcastHashJoin [message_id#1L], [key#2L], Inner, BuildRight, false
"""
NESTED = """\
Project [message_id#12L, key#14L]
+- *(3) BroadcastNestedLoopJoin BuildLeft, Inner,  **org.apache.spark.sql.sedona_sql.expressions.ST_Disjoint**
   :- BroadcastExchange IdentityBroadcastMode, [plan_id=272]
"""
SQUARE = shapely.box(0, 0, 4, 4)
OTHERS = {
    "disjoint": shapely.box(5, 0, 6, 4),
    "meets": shapely.box(4, 0, 6, 4),
    "overlaps": shapely.box(2, 2, 6, 6),
    "equals": shapely.box(0, 0, 4, 4),
    "inside": shapely.box(-1, -1, 5, 5),
    "contains": shapely.box(1, 1, 2, 2),
    "covers": shapely.box(0, 1, 2, 2),
    "covered-by": shapely.box(0, -1, 5, 5),
}


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (INDEXED, "BroadcastIndexJoin"),
        (RANGE, "RangeJoin"),
        (CARTESIAN, "CartesianProduct"),
        (NESTED, "BroadcastNestedLoopJoin"),
    ],
)
def test_the_topmost_join_is_found(text, operator):
    assert plans.operator_of(text) == operator


def test_a_plan_without_a_join_is_an_error():
    with pytest.raises(ValueError, match="no join"):
        plans.operator_of("Project [key#14L]\n+- Scan parquet [JoinKey#1]")


def test_a_loop_is_nested_only_with_and_without_the_hint():
    def spelled(plain, hinted):
        return plans.Spelled("disjoint", "ST_Disjoint(a, b)", plain, hinted, 1.0, 1.0, 0, 0, 0)

    assert spelled("CartesianProduct", "BroadcastNestedLoopJoin").is_nested
    assert not spelled("CartesianProduct", "BroadcastIndexJoin").is_nested


def test_every_relation_is_spelled():
    assert tuple(plans.SPELLINGS) == NAMES


@pytest.mark.parametrize("relation", NAMES)
def test_patterns_hold_for_their_relation_alone(relation):
    found = [re.search(r"ST_Relate\(a, b, '([TF*]{9})'\)", condition) for condition in plans.SPELLINGS[relation]]
    patterns = {match[1] for match in found if match}
    assert patterns
    for name, other in OTHERS.items():
        assert NAMES[judge(SQUARE, other)] == name
        for pattern in patterns:
            assert shapely.relate_pattern(SQUARE, other, pattern) == (name == relation), (pattern, name)
