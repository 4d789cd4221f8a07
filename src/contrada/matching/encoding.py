"""Encode messages for kernels: scalars and texts as numbered slots, only for slots that subscriptions ask about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import forking
from contrada.codes import PRESENT, TEXT
from contrada.errors import FilterError
from contrada.geometry import Circle, Region
from contrada.geometry.arrays import frozen
from contrada.index.scalars import EncodedMessages
from contrada.model.constraint import Constraint
from contrada.model.forms import ACCENTI, CASEI, Slot, folding
from contrada.model.text import encode_text, fold
from contrada.model.values import EXACT_INTEGERS, INEXACT, NUDGE, NUMBER, Scalar, exact_number, ordered_bits, scalar_of


class AttributeSlots(NamedTuple):
    """The numbers of an attribute's slots: by kind of scalar, and by folding of text."""

    scalars: tuple[int, ...]  # slot of numbers, times, booleans; -1: no constraint
    texts: tuple[tuple[int, int], ...]  # pairs of folding and slot


LONGEST_SIDE = 1e300  # of boxes in a sample; those of circles may be infinite, whose mean would be NaN
NO_SLOTS = AttributeSlots((-1, -1, -1), ())


class MessageEncoder:
    """The slots that the constraints of a table use, numbered; encodes messages for them.

    A slot (`slot`) is an attribute and a form. Slots are only added, and the slots of an attribute are replaced as a
    whole, so readers need no lock.
    """

    def __init__(self) -> None:
        self.numbers: dict[Slot, int] = {}
        self.forms = np.empty(16, np.uint8)
        self.asked: dict[str, AttributeSlots] = {}
        self.presences: tuple[tuple[str, int], ...] = ()  # attributes whose presence is asked for, and their slots
        self._between: dict[tuple[int, int], Fraction] = {}

    def number(self, slot: Slot) -> int:
        """Return the number of a slot; a new slot gets the next number."""
        found = self.numbers.get(slot)
        if found is not None:
            return found
        attribute, form = slot
        number = len(self.numbers)
        if number == len(self.forms):
            self.forms = np.concatenate([self.forms, np.empty(number, np.uint8)])
        self.forms[number] = form
        known = self.asked.get(attribute, NO_SLOTS)
        if form < PRESENT:
            scalars = list(known.scalars)
            scalars[form] = number
            known = known._replace(scalars=tuple(scalars))
        elif form == PRESENT:
            self.presences += ((attribute, number),)
        elif form >= TEXT:
            known = known._replace(texts=tuple(sorted((*known.texts, (folding(form), number)))))
        self.numbers[slot] = number
        self.asked[attribute] = known
        return number

    def slot(self, number: int) -> Slot:
        """Return the slot with a number."""
        return list(self.numbers)[number]

    def exact(self, key: int, rest: int) -> Fraction:
        """Return the exact value of a constraint's number that `key` and `rest` only approximate."""
        return self._between[key, rest]

    def saved(self) -> dict[str, Any]:
        """Return the slots as JSON values, for `of_saved`."""
        between = [[*pair, str(exact)] for pair, exact in self._between.items()]
        return {"places": [list(slot) for slot in self.numbers], "between": between}

    @classmethod
    def of_saved(cls, saved: Mapping[str, Any]) -> MessageEncoder:
        """Return the slots that `saved` wrote."""
        encoder = cls()
        for attribute, form in saved["places"]:
            encoder.number((str(attribute), int(form)))
        for key, rest, exact in saved["between"]:
            encoder._between[int(key), int(rest)] = Fraction(exact)
        return encoder

    def check(self, constraints: Iterable[Constraint]) -> None:
        """Store numbers longer than the compared bits; raise FilterError if two differ only beyond those bits."""
        noted: dict[tuple[int, int], Fraction] = {}
        for constraint in constraints:
            if constraint.kind is not None or constraint._test.form != NUMBER:
                continue
            for value in constraint._items:
                scalar = scalar_of(value)
                if scalar is not None and scalar.rest & 7 == INEXACT:
                    exact = exact_number(value)
                    known = self._between.get(scalar[1:], exact)
                    if noted.setdefault(scalar[1:], known) != exact:
                        raise FilterError(
                            f"constraint on {constraint.attribute!r}: {value} cannot be distinguished from a number"
                            " of another subscription; numbers are compared up to 103 bits and 2**1025"
                        )
        self._between.update(noted)

    def scalar(self, value: Any) -> Scalar | None:
        """Return a scalar of a message; a long number is nudged so that it differs from constraints' long numbers."""
        scalar = scalar_of(value)
        if scalar is not None and scalar.rest & 7 == INEXACT and scalar.kind == NUMBER:
            other = self._between.get(scalar[1:])
            if other is not None and other != (exact := exact_number(value)):
                return scalar._replace(rest=scalar.rest + (NUDGE if exact > other else -NUDGE))
        return scalar

    def encode(self, messages: Iterable[Mapping[str, Any]]) -> EncodedMessages:
        """Encode messages for the kernels."""
        values: list[bytes] = []
        ends, blob, asked, put = [0], bytearray(), self.asked, values.append
        for message in messages:
            for attribute, value in message.items():
                about = asked.get(attribute)
                if about is None or value is None:
                    continue
                kind = type(value)
                if kind is float or (kind is int and -EXACT_INTEGERS <= value <= EXACT_INTEGERS):  # fast path
                    slot = about.scalars[NUMBER]
                    if slot >= 0 and value >= 0:  # the bits of a number >= 0 grow with it; -0.0 becomes 0.0
                        put(_NUMBER(slot, value + 0.0, 0))
                    elif slot >= 0 and value < 0:  # False for NaN
                        put(_VALUE(slot, ordered_bits(value), 0))
                elif isinstance(value, str):
                    if len(about.texts) == 1 and about.texts[0][0] == 0:  # fast path
                        start = len(blob)
                        blob += encode_text(value)
                        put(_VALUE(about.texts[0][1], start, len(blob)))
                    else:
                        _put_text(value, about.texts, put, blob)
                else:
                    scalar = self.scalar(value)
                    if scalar is not None and about.scalars[scalar.kind] >= 0:
                        put(_VALUE(about.scalars[scalar.kind], scalar.key, scalar.rest))
            for attribute, slot in self.presences:
                put(_VALUE(slot, message.get(attribute) is not None, 0))
            ends.append(len(values))
        offsets = _ends_of_one(ends[1]) if len(ends) == 2 else frozen(np.array(ends, np.int64))
        text = np.frombuffer(bytes(blob), np.uint8) if blob else _NO_TEXT
        records = np.ndarray((len(values), 3), np.int64, b"".join(values))
        return tuple.__new__(EncodedMessages, (offsets, records, text))  # calling the class takes three times as long


def _put_text(text: str, texts: tuple[tuple[int, int], ...], put: Callable[[bytes], None], blob: bytearray) -> None:
    """Write a text to its slots, once per folding."""
    last, start, stop = -1, 0, 0
    for folded, slot in texts:  # sorted by folding
        if folded != last:
            start = len(blob)
            blob += encode_text(fold(text, bool(folded & CASEI), bool(folded & ACCENTI)) if folded else text)
            last, stop = folded, len(blob)
        put(_VALUE(slot, start, stop))


@cache
def _ends_of_one(values: int) -> NDArray[np.int64]:
    """Return the offsets of one message with `values` values; cached."""
    return frozen(np.array([0, values], np.int64))


# Records: slot, key, rest; or slot, start and end of a text; or slot and a number whose bits are the key.
_VALUE, _NUMBER = Struct("=qqq").pack, Struct("=qdq").pack
_NO_TEXT = frozen(np.empty(0, np.uint8))


class Seen(NamedTuple):
    """A sample of recent messages, and the usual width and height of their regions by attribute."""

    messages: EncodedMessages | None
    sizes: Mapping[str, tuple[float, float]]


class MessageSample:
    """A sample of recent messages, one in `SAMPLE_EVERY`; packing estimates selectivity from it."""

    SAMPLE_SIZE, SAMPLE_EVERY = 256, 16

    def __init__(self) -> None:
        self.turn = 0  # messages seen so far
        self._kept: list[EncodedMessages] = []
        self._sizes: dict[str, tuple[float, float]] = {}
        self._lock = forking.make_lock(forking.SAMPLING)

    def note(self, scalars: EncodedMessages | None, objects: Mapping[tuple[str, str], Any]) -> None:
        """Add a message to the sample if it is among the first `SAMPLE_SIZE`, or every `SAMPLE_EVERY`-th."""
        self.turn = turn = self.turn + 1
        if turn % self.SAMPLE_EVERY and turn > self.SAMPLE_SIZE:
            return
        with self._lock:
            for (attribute, kind), value in objects.items():
                if kind == "region":
                    x0, y0, x1, y1 = value.bounds if isinstance(value, Region | Circle) else (0.0,) * 4
                    width, height = min(x1 - x0, LONGEST_SIDE), min(y1 - y0, LONGEST_SIDE)
                    old = self._sizes.get(attribute, (width, height))
                    self._sizes[attribute] = old[0] + (width - old[0]) / 16, old[1] + (height - old[1]) / 16
            if scalars is None:
                return
            if len(self._kept) < self.SAMPLE_SIZE:
                self._kept.append(scalars)
            else:
                self._kept[turn // self.SAMPLE_EVERY % self.SAMPLE_SIZE] = scalars

    def seen(self, encoder: MessageEncoder) -> Seen:
        """Return the sample as one batch, and the region sizes."""
        with self._lock:
            return Seen(joined_messages(self._kept, encoder.forms) if self._kept else None, dict(self._sizes))


def joined_messages(parts: list[EncodedMessages], forms: NDArray[np.uint8]) -> EncodedMessages:
    """Concatenate encoded messages; `forms` are the forms of the slots."""
    offsets, values, count, text = [np.zeros(1, np.int64)], [], 0, 0
    for part in parts:
        own = part.values.copy()
        own[forms[own[:, 0]] >= TEXT, 1:] += text
        offsets.append(part.offsets[1:] + count)
        values.append(own)
        count, text = count + len(own), text + len(part.blob)
    blob = np.concatenate([part.blob for part in parts])
    return EncodedMessages(frozen(np.concatenate(offsets)), frozen(np.concatenate(values)), frozen(blob))
