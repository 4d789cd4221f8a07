"""Tracks against the model: the same events and the same state, whatever is asked, however it is cut and restored."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.tracking import Tracks, read_fixes, watch_of
from effort import examples
from generators.tracked import Advance, Publish, Restart, Subscribe, Unsubscribe, commands
from oracles.tracked import TrackModel


class Followed:
    """A table and Tracks, driven as a service does: matches by number, deltas beside every change."""

    def __init__(self, **options):
        self.table = ct.ForwardingTable()
        self.tracks = Tracks(**options)
        self.now = 0
        self.snapshot, self.deltas = self.tracks.snapshot(), []

    def subscribe(self, command):
        self.table.subscribe("s", command.text, command.number, replace=True)
        told = self.tracks.watch(command.number, watch_of(command.text, command.on, **command.options), self.now)
        return self.noted(told)

    def unsubscribe(self, number):
        self.table.unsubscribe(number)
        return self.noted(self.tracks.unwatch([number], self.now))

    def publish(self, fixes):
        messages = [message_of(*fix) for fix in fixes]
        self.now = max([self.now, *(time for _, time, _, _ in fixes)])
        answer = self.table.match_many(messages, "subscription")
        assert not answer.rejected
        read, _ = read_fixes(messages, "id", "at", time="time", arrival=0)
        rows = np.repeat(np.arange(len(answer)), np.diff(answer.offsets))
        numbers = np.array(self.table.keys_of(answer.rows), np.int64)
        return self.noted(self.tracks.apply(read._replace(rows=rows, numbers=numbers)))

    def advance(self, by):
        self.now += by * 1000
        return self.noted(self.tracks.advance(self.now))

    def restart(self, is_fresh):
        if is_fresh:
            self.snapshot, self.deltas = self.tracks.snapshot(), []
        self.tracks = Tracks.restore(self.snapshot, self.deltas)

    def noted(self, told):
        self.deltas.append(self.tracks.take_delta())
        return [tuple(plain(event)) for event in told]


def plain(event):
    before, after = (None if code is None else int(code) for code in (event.before, event.after))
    return event._replace(before=before, after=after)


def message_of(name, time, geometry, attributes):
    message = {"id": name, "time": time, **attributes}
    if geometry is not None:
        message["at"] = geometry
    return message


def run_both(run, late, expire_after):
    ours, model = Followed(late=late, expire_after=expire_after), TrackModel(late, expire_after)
    for command in run:
        if isinstance(command, Subscribe):
            is_same = ours.tracks.watched(command.number) == watch_of(command.text, command.on, **command.options)
            told = [] if is_same else model.subscribe(command.number, command.asked, ours.now)
            assert ours.subscribe(command) == told
        elif isinstance(command, Unsubscribe) and command.number in model.asked:
            told = model.unsubscribe(command.number, ours.now)
            assert ours.unsubscribe(command.number) == told
        elif isinstance(command, Publish):
            assert ours.publish(command.fixes) == model.publish(command.fixes)
        elif isinstance(command, Advance):
            assert ours.advance(command.by) == model.advance(ours.now)
        elif isinstance(command, Restart):
            ours.restart(command.is_fresh)
        assert [tuple(one) for one in ours.tracks.inside()] == model.inside()
        assert (ours.tracks.objects, ours.tracks.late) == (len(model.objects), model.late)
        assert ours.tracks.pairs == len(model.inside())


RUNS = (commands(), st.sampled_from(["ignore", "arrival"]), st.none() | st.integers(1, 20))


@given(*RUNS)
@settings(max_examples=examples(60))
def test_tracks_tell_what_the_model_tells(run, late, expiry):
    run_both(run, late, None if expiry is None else expiry * 1000)


@pytest.mark.slow
@given(*RUNS)
@settings(max_examples=examples(1200))
def test_tracks_tell_what_the_model_tells_in_many_runs(run, late, expiry):
    run_both(run, late, None if expiry is None else expiry * 1000)


def cut(batch, places):
    bounds = [0, *sorted(place % (len(batch) + 1) for place in places), len(batch)]
    return [batch[one:other] for one, other in itertools.pairwise(bounds) if one < other]


@given(commands(spread=0), st.lists(st.integers(0, 100), max_size=6))
@settings(max_examples=examples(60))
def test_batches_may_be_cut_anywhere(run, places):
    whole, parts = Followed(), Followed()
    for command in run:
        if isinstance(command, Subscribe):
            assert whole.subscribe(command) == parts.subscribe(command)
        elif isinstance(command, Publish):
            told, begin = [], 0
            for part in cut(command.fixes, places):
                told += [(*event[:6], event[6] + begin, event[7]) for event in parts.publish(part)]
                begin += len(part)
            assert whole.publish(command.fixes) == told
        elif isinstance(command, Advance):
            assert whole.advance(command.by) == parts.advance(command.by)
    assert whole.tracks.inside() == parts.tracks.inside()


@given(commands(), st.integers(0, 20))
@settings(max_examples=examples(60))
def test_a_crash_at_any_moment_loses_nothing_that_was_written(run, at):
    """The state after every written delta equals the live one, and goes on alike."""
    live = Followed(expire_after=9000)
    for place, command in enumerate(run):
        if isinstance(command, Subscribe):
            live.subscribe(command)
        elif isinstance(command, Publish):
            live.publish(command.fixes)
        elif isinstance(command, Advance):
            live.advance(command.by)
        if place == at:
            break
    again = Tracks.restore(live.snapshot, live.deltas)
    assert again.inside() == live.tracks.inside()
    assert (again.objects, again.late) == (live.tracks.objects, live.tracks.late)
    later = live.now + 100_000
    assert [plain(event) for event in again.advance(later)] == [plain(event) for event in live.tracks.advance(later)]
