"""Every store keeps the promises of MessageStore."""

import random
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from contrada.service.store.message_store import MessageStore, Span, StoreChange, StoredBody, StoredMessage, StoreError

HIGHEST = chr(0x10FFFF)
# Around the ends of what UTF-8 has in one, two, three and four bytes, and on both sides of the surrogates.
AWKWARD = ["\0", "a", "a\0", "a\0b", "aé", "b", "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ud7ffz", "\ue000",
           "\uffff", "\U00010000", HIGHEST, HIGHEST + "a", HIGHEST * 2, "a" + HIGHEST, "a" + HIGHEST + "z", "%", "_",
           "a%", "'"]  # fmt: skip


def message(sequence: int, id: str = "", matches: bytes = b"") -> StoredMessage:
    return StoredMessage(sequence, 1_000 * sequence, "tenant", id, "geojson", b"{}", matches, 100 * sequence)


def append(store: MessageStore, sequences: Iterable[int]) -> None:
    store.write(StoreChange(messages=[message(sequence) for sequence in sequences]))


def put(store: MessageStore, kind: str, names: Iterable[str]) -> None:
    store.write(StoreChange(records=[(kind, name, name.encode()) for name in names]))


def kept(store: MessageStore) -> list[int]:
    return [found.sequence for found in store.messages(0, 1_000_000)]


# --- messages ---


def test_an_empty_store_has_nothing(store):
    assert store.span() == Span(1, 0)
    assert store.newest() is None
    assert store.messages(1, 10) == []
    assert store.matches(1, 10) == []
    assert store.bodies([1, 2]) == {}
    assert store.bodies([]) == {}
    assert store.ids(10) == []
    assert (store.first_at(0), store.first_with_total(0)) == (1, 1)
    assert list(store.records("kind")) == []
    assert store.record("kind", "name") is None


def test_messages_come_back_as_they_were(store):
    given = [
        StoredMessage(1, 0, "", "", "", b"", b"", 0),
        StoredMessage(2, 1_700_000_000_000, "t\0é", "\0id", "f" + HIGHEST, bytes(range(256)), b"\0\1", 1 << 60),
        StoredMessage(3, (1 << 63) - 1, "%s ? $1", "'; --", "\\x41", b"\\x41", b"\xff", (1 << 63) - 1),
        StoredMessage(4, (1 << 63) - 1, "t", "id", "f", random.Random(1).randbytes(3 << 20), b"", (1 << 63) - 1),
    ]
    store.write(StoreChange(messages=given[:1]))
    store.write(StoreChange(messages=given[1:]))
    assert store.messages(1, 10) == given
    assert store.newest() == given[-1]
    assert store.span() == Span(1, 4)
    assert store.bodies([1, 3, 9]) == {one.sequence: StoredBody(one.at, one.format, one.body) for one in given[::2][:2]}
    assert store.sizes([1, 2, 4, 9]) == {1: 0, 2: 256, 4: 3 << 20}
    assert all(type(found) is StoredMessage for found in store.messages(1, 10))


def test_messages_from_a_place_up_to_a_limit(store):
    append(store, range(1, 101))
    assert [found.sequence for found in store.messages(40, 3)] == [40, 41, 42]
    assert [found.sequence for found in store.messages(99, 30)] == [99, 100]
    assert store.messages(50, 0) == []
    assert store.messages(101, 5) == []


def test_only_match_lists_with_matches_are_returned(store):
    store.write(StoreChange(messages=[message(k, matches=b"\0" * (k % 3)) for k in range(1, 10)]))
    assert store.matches(2, 6) == [(2, b"\0\0"), (4, b"\0"), (5, b"\0\0")]
    assert store.matches(6, 2) == []


def test_bodies_of_more_messages_than_a_query_takes(store):
    append(store, range(1, 2_001))
    wanted = list(range(2_500, 0, -1))
    assert sorted(store.bodies(wanted)) == list(range(1, 2_001))
    assert sorted(store.bodies({7, 8})) == [7, 8]


@pytest.mark.parametrize("far", [1 << 63, 1 << 80])
def test_numbers_beyond_64_bits_are_beyond_all_messages(store, far):
    append(store, [1, 2])
    assert store.messages(far, far) == []
    assert kept(store) == [found.sequence for found in store.messages(-far, far)] == [1, 2]
    assert store.matches(-far, far) == []
    assert store.bodies([far, -far, 2]).keys() == {2}
    assert (store.first_at(far), store.first_at(-far)) == (3, 1)
    assert (store.first_with_total(far), store.first_with_total(-far)) == (3, 1)
    assert store.ids(far) == []


# --- trimming and searching ---


def test_trim_removes_messages_before_a_sequence(store):
    append(store, range(1, 11))
    store.write(StoreChange(trim=4))
    assert store.span() == Span(4, 10)
    store.write(StoreChange(trim=2))
    store.write(StoreChange(messages=[message(11)], trim=11))
    assert (store.span(), kept(store)) == (Span(11, 11), [11])
    assert store.bodies([3, 11]).keys() == {11}


def test_the_newest_message_is_never_trimmed(store):
    append(store, range(1, 4))
    store.write(StoreChange(trim=1 << 40))
    assert store.newest() == message(3)
    assert store.span() == Span(3, 3)


def test_searches_after_trims_and_gaps_agree_with_a_scan(store):
    draw = random.Random(25)
    rows, at, total, sequence = [], 0, 0, 0
    for _ in range(120):
        sequence += draw.choice([1, 1, 1, 2, 40])
        at += draw.choice([0, 0, 5])
        total += draw.choice([0, 3, 100])
        rows.append(StoredMessage(sequence, at, "t", "", "f", b"", b"", total))
    store.write(StoreChange(messages=rows))
    for bound in (0, rows[30].sequence, rows[31].sequence + 1, rows[-2].sequence + 1):
        store.write(StoreChange(trim=bound))
        left = [row for row in rows if row.sequence >= bound]
        for least in {*range(-1, at + 3), 10 * at}:
            expected = next((row.sequence for row in left if row.at >= least), sequence + 1)
            assert store.first_at(least) == expected, (bound, least)
        for least in {row.total + d for row in rows for d in (-1, 0, 1)}:
            expected = next((row.sequence for row in left if row.total > least), sequence + 1)
            assert store.first_with_total(least) == expected, (bound, least)


def test_ids_of_the_latest_messages(store):
    ids = ["a", "", "b", "\0c", "", "a"]
    store.write(StoreChange(messages=[message(k, id=id) for k, id in enumerate(ids, 1)]))
    found = [("tenant", id, k) for k, id in enumerate(ids, 1) if id]
    assert store.ids(100) == found
    assert store.ids(4) == found[1:]
    assert store.ids(3) == found[2:]
    assert store.ids(0) == []
    store.write(StoreChange(trim=4))
    assert store.ids(100) == found[2:]


# --- records ---


def test_records_are_put_replaced_and_deleted(store):
    store.write(StoreChange(records=[("k", "a", b"1"), ("k", "b", b""), ("other", "a", b"2")]))
    store.write(StoreChange(records=[("k", "a", b"3"), ("k", "none", None)]))
    assert list(store.records("k")) == [("a", b"3"), ("b", b"")]
    store.write(StoreChange(records=[("k", "a", None)]))
    assert store.record("k", "a") is None
    assert (store.record("k", "b"), store.record("other", "a")) == (b"", b"2")


def test_the_last_of_several_changes_to_a_record_counts(store):
    again = [("k", "a", b"1"), ("k", "a", b"2"), ("k", "b", b"1"), ("k", "b", None), ("k", "c", None), ("k", "c", b"3")]
    store.write(StoreChange(records=again))
    assert list(store.records("k")) == [("a", b"2"), ("c", b"3")]


def test_records_are_chosen_by_name(store):
    put(store, "k", [*AWKWARD, *map(str, range(1_200))])
    put(store, "other", ["a"])
    assert store.chosen("k", []) == {}
    assert store.chosen("k", ["none", "a"]) == {"a": b"a"}
    wanted = [*AWKWARD, *map(str, range(600, 2_000))]
    assert store.chosen("k", wanted) == {name: name.encode() for name in [*AWKWARD, *map(str, range(600, 1_200))]}


def test_names_are_ordered_by_code_points(store):
    put(store, "k", random.Random(3).sample(AWKWARD, len(AWKWARD)))
    assert list(store.records("k")) == [(name, name.encode()) for name in sorted(AWKWARD)]
    assert all(store.record("k", name) == name.encode() for name in AWKWARD)
    assert sorted(store.names("k")) == sorted(AWKWARD)
    assert store.names("none") == []


def test_pages_of_names_with_a_prefix(store):
    put(store, "k", AWKWARD)
    put(store, "another", ["a", "b"])
    for prefix in ("", *AWKWARD, "\ud7fe", "a" + HIGHEST * 2, "none"):
        for after in ("", "a", prefix + "a", HIGHEST * 3):
            expected = sorted(name for name in AWKWARD if name.startswith(prefix) and name > after)
            assert [name for name, _ in store.page("k", prefix, after, 100)] == expected, (prefix, after)
            assert [name for name, _ in store.page("k", prefix, after, 2)] == expected[:2], (prefix, after)


def test_pages_follow_one_another(store):
    names = sorted(f"{k:03}" for k in range(50))
    put(store, "k", names)
    found, after = [], ""
    while page := store.page("k", "", after, 7):
        found += [name for name, _ in page]
        after = found[-1]
    assert found == names


def test_reading_on_while_records_are_iterated(store):
    put(store, "k", [f"{k:04}" for k in range(3_000)])
    names = []
    for name, _ in store.records("k"):
        if not names:
            store.write(StoreChange(records=[("k", "new", b"")]))
            assert store.record("k", "new") == b""  # other reads see the present
        names.append(name)
    assert names == [f"{k:04}" for k in range(3_000)]  # the iteration shows one moment
    assert next(store.records("k"))  # an iteration that is given up disturbs nothing
    put(store, "k", ["later"])
    assert store.record("k", "later") == b"later"


# --- all or nothing ---

BAD_MESSAGES = [
    pytest.param(message(2), id="sequence twice"),
    pytest.param(message(1), id="sequence that exists"),
    pytest.param(message(1 << 63), id="number beyond 64 bits"),
    pytest.param(message(9)._replace(tenant="\ud800"), id="half a surrogate pair"),
    pytest.param(message(9)._replace(body=None), id="no body"),
]


@pytest.mark.parametrize("bad", BAD_MESSAGES)
def test_a_bad_message_in_the_middle_leaves_nothing(store, bad):
    append(store, [1])
    records = [("k", "a", b"1")]
    with pytest.raises(StoreError):
        store.write(StoreChange([message(2), bad, message(3)], records, trim=2))
    assert kept(store) == [1]
    assert list(store.records("k")) == []
    store.write(StoreChange([message(2), message(3)], records))
    assert (kept(store), list(store.records("k"))) == ([1, 2, 3], [("a", b"1")])


@pytest.mark.parametrize("bad", [("k", "\ud800", b""), ("\udfff", "b", None)])
def test_a_bad_record_in_the_middle_leaves_nothing(store, bad):
    put(store, "k", ["old"])
    with pytest.raises(StoreError):
        store.write(StoreChange([message(1)], [("k", "a", b"1"), ("k", "old", None), bad, ("k", "c", b"1")]))
    assert store.newest() is None
    assert list(store.records("k")) == [("old", b"old")]
    put(store, "k", ["next"])


def test_names_that_cannot_be_stored_are_an_error_to_readers_too(store):
    for read in (
        lambda: store.record("k", "\ud800"),
        lambda: store.page("k", "\ud800", "", 1),
        lambda: list(store.records("\ud800")),
    ):
        with pytest.raises(StoreError):
            read()
    assert list(store.records("k")) == []


def test_an_empty_change_does_nothing(store):
    store.write(StoreChange())
    assert store.span() == Span(1, 0)


# --- threads, and opening again ---


def test_other_threads_read_while_one_writes(store):
    """Each change holds ten messages and a record that counts them: readers see all of a change or nothing of it."""
    stop = threading.Event()

    def read() -> int:
        seen = 0
        while not stop.is_set():
            before = int(store.record("k", "count") or 0)
            oldest, newest = store.span()
            rows = store.messages(oldest, 10_000)
            after = int(store.record("k", "count") or 0)
            assert before <= newest
            assert newest % 10 == 0
            numbers = [row.sequence for row in rows]
            assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else not before
            assert (numbers[-1] if numbers else 0) <= after + 10
            assert seen <= newest
            seen = newest
            assert len(list(store.records("many"))) in (0, 50)
        return seen

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(5)]
        try:
            for start in range(1, 1_001, 10):
                rows = [message(k) for k in range(start, start + 10)]
                records = [("k", "count", str(start + 9).encode())]
                records += [("many", str(k), b"" if start % 20 == 1 else None) for k in range(50)]
                store.write(StoreChange(rows, records, trim=start - 200))
                assert store.span().newest == start + 9  # who wrote reads what was written
        finally:
            stop.set()
        assert max(reader.result() for reader in readers) <= 1_000


def test_a_closed_store_reads_nothing_and_others_finish(place):
    store = place.open()
    put(store, "k", [f"{k:04}" for k in range(3_000)])
    iteration = store.records("k")
    next(iteration)
    store.close()
    with pytest.raises(StoreError):
        store.span()
    with pytest.raises(StoreError):
        store.write(StoreChange(records=[("k", "a", b"")]))
    assert sum(1 for _ in iteration) == 2_999


def test_what_was_written_is_there_when_the_store_is_opened_again(place):
    store = place.open()
    store.write(StoreChange([message(k, id=str(k)) for k in range(1, 6)], [("k", "a", b"1")], trim=3))
    everything = (store.messages(0, 10), list(store.records("k")), store.span(), store.ids(3), store.first_at(3_500))
    store.close()
    store.close()
    again = place.open()
    assert everything == (
        again.messages(0, 10),
        list(again.records("k")),
        again.span(),
        again.ids(3),
        again.first_at(3_500),
    )
    append(again, [6])
    assert kept(again) == [3, 4, 5, 6]


def test_two_stores_never_share_a_place(place):
    first = place.open()
    with pytest.raises(StoreError, match="another server uses this"):
        place.open()
    append(first, [1])
    first.close()
    assert kept(place.open()) == [1]


# --- versions ---

TABLE = "CREATE TABLE notes (note INTEGER NOT NULL); INSERT INTO notes VALUES (1)"


def test_a_store_of_a_later_version_is_refused(place):
    place.open(migrations=(*place.migrations, TABLE)).close()
    with pytest.raises(StoreError, match=f"later version .schema {len(place.migrations) + 1}; this one knows"):
        place.open()
    place.open(migrations=(*place.migrations, TABLE)).close()


@pytest.mark.parametrize("later", [(), (TABLE,), (TABLE, "DROP TABLE notes")])
def test_a_store_of_each_earlier_version_is_brought_up(place, later):
    old = place.open()
    store_state = [message(1), message(2)], [("k", "a", b"1")]
    old.write(StoreChange(*store_state))
    old.close()
    for stop in range(len(later) + 1):
        store = place.open(migrations=(*place.migrations, *later[:stop]))
        assert (store.messages(0, 9), [("k", *found) for found in store.records("k")]) == store_state
        store.close()


def test_a_migration_that_fails_changes_nothing(place):
    place.open().close()
    with pytest.raises(StoreError):
        place.open(migrations=(*place.migrations, TABLE + "; INSERT INTO nowhere VALUES (1)"))
    store = place.open()
    append(store, [1])
    store.close()
    store = place.open(migrations=(*place.migrations, TABLE))  # the table of the failed step is not there
    assert kept(store) == [1]
