"""Messages as kernels take them: of every attribute that some subscription asks about, the forms that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import forking
from contrada.errors import FilterError
from contrada.geometry import Region
from contrada.geometry.arrays import frozen
from contrada.index.scalars import EncodedMessages
from contrada.model.constraint import Constraint
from contrada.model.forms import ACCENTI, CASEI, PRESENT, TEXT, Place, folding
from contrada.model.text import encode_text, fold
from contrada.model.values import EXACT_INTEGERS, INEXACT, NUDGE, NUMBER, Scalar, exact_number, ordered_bits, scalar_of


class AttributeSlots(NamedTuple):
    """The places of an attribute that constraints are about: by kind of scalar, and by form of text."""

    scalars: tuple[int, ...]  # of numbers, times, booleans: the number of the place, -1 if nobody asks
    texts: tuple[tuple[int, int], ...]  # folding, place


NOTHING = AttributeSlots((-1, -1, -1), ())


class Places:
    """The places that the constraints of a table are about, numbered; and how messages are looked up there.

    Grows only, and readers need no lock: what is asked about an attribute is replaced as a whole.
    """

    def __init__(self) -> None:
        self.numbers: dict[Place, int] = {}
        self.forms = np.empty(16, np.uint8)
        self.asked: dict[str, AttributeSlots] = {}
        self._presents: tuple[tuple[str, int], ...] = ()
        self._between: dict[tuple[int, int], Fraction] = {}

    def number(self, place: Place) -> int:
        """The number of a place, new if nobody asked about it before."""
        found = self.numbers.get(place)
        if found is not None:
            return found
        attribute, form = place
        number = len(self.numbers)
        if number == len(self.forms):
            self.forms = np.concatenate([self.forms, np.empty(number, np.uint8)])
        self.forms[number] = form
        known = self.asked.get(attribute, NOTHING)
        if form < PRESENT:
            scalars = list(known.scalars)
            scalars[form] = number
            known = known._replace(scalars=tuple(scalars))
        elif form == PRESENT:
            self._presents += ((attribute, number),)
        elif form >= TEXT:
            known = known._replace(texts=tuple(sorted((*known.texts, (folding(form), number)))))
        self.numbers[place] = number
        self.asked[attribute] = known
        return number

    def place(self, number: int) -> Place:
        """The place of a number."""
        return list(self.numbers)[number]

    def exact(self, key: int, rest: int) -> Fraction:
        """The number of a constraint that is longer than its key and rest say."""
        return self._between[key, rest]

    def saved(self) -> dict[str, Any]:
        """What `of_saved` makes these places of again, as JSON has it."""
        between = [[*pair, str(exact)] for pair, exact in self._between.items()]
        return {"places": [list(place) for place in self.numbers], "between": between}

    @classmethod
    def of_saved(cls, saved: Mapping[str, Any]) -> Places:
        """Places that were saved."""
        places = cls()
        for attribute, form in saved["places"]:
            places.number((str(attribute), int(form)))
        for key, rest, exact in saved["between"]:
            places._between[int(key), int(rest)] = Fraction(exact)
        return places

    def check(self, constraints: Iterable[Constraint]) -> None:
        """Refuse numbers that differ from others only beyond what is compared; note those that are longer than that."""
        noted: dict[tuple[int, int], Fraction] = {}
        for constraint in constraints:
            if constraint.kind is not None or constraint.test.form != NUMBER:
                continue
            for value in constraint.value if type(constraint.value) is tuple else (constraint.value,):
                scalar = scalar_of(value)
                if scalar is not None and scalar.rest & 7 == INEXACT:
                    exact = exact_number(value)
                    known = self._between.get(scalar[1:], exact)
                    if noted.setdefault(scalar[1:], known) != exact:
                        raise FilterError(
                            f"constraint on {constraint.attribute!r}: {value} cannot be told apart from another"
                            " subscription's number: 103 bits are compared, of numbers up to 2**1025"
                        )
        self._between.update(noted)

    def scalar(self, value: Any) -> Scalar | None:
        """A scalar of a message, told apart from the long numbers of constraints."""
        scalar = scalar_of(value)
        if scalar is not None and scalar.rest & 7 == INEXACT and scalar.kind == NUMBER:
            other = self._between.get(scalar[1:])
            if other is not None and other != (exact := exact_number(value)):
                return scalar._replace(rest=scalar.rest + (NUDGE if exact > other else -NUDGE))
        return scalar

    def encode(self, messages: Iterable[Mapping[str, Any]]) -> EncodedMessages:
        """Messages as kernels take them."""
        values: list[bytes] = []
        ends, blob, asked, put = [0], bytearray(), self.asked, values.append
        for message in messages:
            for attribute, value in message.items():
                about = asked.get(attribute)
                if about is None or value is None:
                    continue
                kind = type(value)
                if kind is float or (kind is int and -EXACT_INTEGERS <= value <= EXACT_INTEGERS):  # usual: quickly
                    place = about.scalars[NUMBER]
                    if place >= 0 and value >= 0:  # whose bits grow with the number; -0.0 becomes 0.0
                        put(_NUMBER(place, value + 0.0, 0))
                    elif place >= 0 and value < 0:  # which NaN is not
                        put(_VALUE(place, ordered_bits(value), 0))
                elif isinstance(value, str):
                    _put_text(value, about.texts, put, blob)
                else:
                    scalar = self.scalar(value)
                    if scalar is not None and about.scalars[scalar.kind] >= 0:
                        put(_VALUE(about.scalars[scalar.kind], scalar.key, scalar.rest))
            for attribute, place in self._presents:
                put(_VALUE(place, message.get(attribute) is not None, 0))
            ends.append(len(values))
        offsets = _ends_of_one(ends[1]) if len(ends) == 2 else frozen(np.array(ends, np.int64))
        text = np.frombuffer(bytes(blob), np.uint8) if blob else _NO_TEXT
        return EncodedMessages(offsets, np.ndarray((len(values), 3), np.int64, b"".join(values)), text)


def _put_text(text: str, texts: tuple[tuple[int, int], ...], put: Callable[[bytes], None], blob: bytearray) -> None:
    """Put a text to its places, in as many foldings as are asked for."""
    last, start, stop = -1, 0, 0
    for folded, place in texts:  # in the order of the foldings
        if folded != last:
            start = len(blob)
            blob += encode_text(folded_text(text, folded) if folded else text)
            last, stop = folded, len(blob)
        put(_VALUE(place, start, stop))


@cache
def _ends_of_one(values: int) -> NDArray[np.int64]:
    """The offsets of one message, made once for each number of values."""
    return frozen(np.array([0, values], np.int64))


# A place, and a key and rest or the ends of a text; or the number whose bits are the key.
_VALUE, _NUMBER = Struct("=qqq").pack, Struct("=qdq").pack
_NO_TEXT = frozen(np.empty(0, np.uint8))


def folded_text(text: str, folded: int) -> str:
    """Text without regard to case, accents or both."""
    return text if not folded else fold(text, bool(folded & CASEI), bool(folded & ACCENTI))


class Seen(NamedTuple):
    """What is known of messages: some of them, and how large their regions are, by attribute."""

    messages: EncodedMessages | None
    sizes: Mapping[str, tuple[float, float]]


class MessageSample:
    """Some of the last messages, one in so many: what the next packing estimates from."""

    ROOM, EVERY = 256, 16

    def __init__(self) -> None:
        self.turn = 0  # the number of messages
        self._kept: list[EncodedMessages] = []
        self._sizes: dict[str, tuple[float, float]] = {}
        self._lock = forking.make_lock(forking.SAMPLING)

    def note(self, scalars: EncodedMessages | None, objects: Mapping[tuple[str, str], Any]) -> None:
        """Take a message into account, if it is its turn."""
        self.turn += 1
        if self.turn % self.EVERY and self.turn > self.ROOM:
            return
        with self._lock:
            for (attribute, kind), value in objects.items():
                if kind == "region":
                    x0, y0, x1, y1 = value.bounds if isinstance(value, Region) else (0.0,) * 4
                    old = self._sizes.get(attribute, (x1 - x0, y1 - y0))
                    self._sizes[attribute] = old[0] + (x1 - x0 - old[0]) / 16, old[1] + (y1 - y0 - old[1]) / 16
            if scalars is None:
                return
            if len(self._kept) < self.ROOM:
                self._kept.append(scalars)
            else:
                self._kept[self.turn // self.EVERY % self.ROOM] = scalars

    def seen(self, places: Places) -> Seen:
        """What was noted."""
        with self._lock:
            return Seen(joined_messages(self._kept, places.forms) if self._kept else None, dict(self._sizes))


def joined_messages(parts: list[EncodedMessages], forms: NDArray[np.uint8]) -> EncodedMessages:
    """Messages of several encodings, one after another; forms are those of the places."""
    offsets, values, count, text = [np.zeros(1, np.int64)], [], 0, 0
    for part in parts:
        own = part.values.copy()
        own[forms[own[:, 0]] >= TEXT, 1:] += text
        offsets.append(part.offsets[1:] + count)
        values.append(own)
        count, text = count + len(own), text + len(part.blob)
    blob = np.concatenate([part.blob for part in parts])
    return EncodedMessages(frozen(np.concatenate(offsets)), frozen(np.concatenate(values)), frozen(blob))
