"""Match lists as bytes: all ways to read them find what was packed, short and long, with tracked objects or without."""

from random import Random

import pytest

from contrada.service.matches import COMPRESS_FROM, NUMBER_BITS, list_matches, pack_matches, unpack_many, unpack_matches

LAST = (1 << NUMBER_BITS) - 1


@pytest.mark.parametrize("count", [0, 1, 2, COMPRESS_FROM - 1, COMPRESS_FROM, COMPRESS_FROM + 1, 500])
def test_numbers_come_back(count):
    random = Random(count)
    lists = [sorted(random.sample(range(LAST), count)), list(range(count)), list(range(LAST + 1 - count, LAST + 1))]
    packed = [pack_matches(numbers) for numbers in lists]
    assert [list_matches(data) for data in packed] == lists
    assert [unpack_matches(data).tolist() for data in packed] == lists
    numbers, counts = unpack_many(packed)
    assert numbers.tolist() == [number for own in lists for number in own]
    assert counts.tolist() == [count] * 3


def test_events_of_tracked_objects_are_listed_with_the_others():
    data = pack_matches([3, 9], [(2, b"{}"), (2 + (1 << NUMBER_BITS), b"[]")])
    assert list_matches(data) == unpack_matches(data).tolist() == [2, 3, 9, 2 + (1 << NUMBER_BITS)]
