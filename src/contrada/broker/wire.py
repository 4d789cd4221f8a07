"""Frames and records as bytes: MessagePack, regions as WKB, messages as Arrow streams; anything else is refused."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from contrada.broker.frames import Frame
from contrada.broker.messages import MessageRows
from contrada.cql2 import parse
from contrada.doors import input_errors, reason_of
from contrada.errors import BrokerError
from contrada.formats.bounded import check_expansion
from contrada.formats.parquet.ipc_sizes import ipc_stream_bytes
from contrada.geometry import Circle, Line, LineRelationSet, Point, Region, RelationSet
from contrada.limits import check_limit
from contrada.model import Constraint, Filter, Predicate
from contrada.model.reach import DistanceOperator, read_reach
from contrada.model.types import type_named

LARGEST_INTEGER = 1 << 63  # of MessagePack
SHAPES: tuple[type[Point | Region | Circle | Line], ...] = (Point, Region, Circle, Line)  # by these numbers
OF_LINES = "lines"  # marks a mask of OGC's relations
SENT_TYPES = (*SHAPES, list)  # besides plain values


def encode(frame: Any) -> bytes:
    """Return the bytes of a frame, or of another value made of such parts.

    >>> from contrada.broker.frames import LinkAck
    >>> decode(encode(LinkAck(7)))
    LinkAck(number=7)
    """
    return _ENCODER.encode(frame)


def decode(data: bytes) -> Frame:
    """Return the frame in `data`; raise BrokerError if there is none."""
    try:
        check_limit("link_frame_bytes", len(data), "a frame")
        return _DECODER.decode(data)
    except input_errors(KeyError, TypeError, IndexError, OSError) as error:  # PyArrow raises OSError for bad lengths
        raise BrokerError(f"not a frame of this protocol: {reason_of(error)}") from error


def digest_of(predicate: Predicate, is_advertisement: bool = False) -> int:
    """Return 63 bits that tell predicates apart, and subscriptions from advertisements.

    Equal predicates may have several digests (a NumPy boolean has a form of its own), so a broker keeps the digest that
    came with a predicate and never computes it again.
    """
    person = b"advertisement" if is_advertisement else b"subscription"
    content = _ENCODER.encode(_filters(predicate))
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, person=person).digest(), "big") >> 1


def _filters(predicate: Predicate) -> list[list[Any]]:
    return [[_constraint(constraint) for constraint in part.constraints] for part in predicate.filters]


def _constraint(constraint: Constraint) -> list[Any]:
    """Return a constraint as attribute, operator and value, or as CQL2 text if its value has no plain form.

    Operands of registered types go as their types dump them.
    """
    operator, value = constraint.operator, constraint.value
    if not isinstance(operator, str) and isinstance(value, Region | Point | Line):
        crs = None if value.crs is None else str(value.crs)
        further: list[Any] = [*_distance(operator)] if isinstance(operator, DistanceOperator) else []
        further += [OF_LINES] if isinstance(operator, LineRelationSet) else []
        return [constraint.attribute, operator.mask, SHAPES.index(type(value)), value.to_wkb(), crs, *further]
    if not isinstance(operator, str):
        raise BrokerError(f"a constraint with a column: {constraint!s:.60}")
    if constraint.kind is not None:
        return [constraint.attribute, operator, constraint.kind, type_named(constraint.kind).dump(value)]
    items = value if type(value) is tuple else (value,)
    if not all(_is_plain(item) for item in items):
        return [str(constraint)]
    return [constraint.attribute, operator, value, constraint.casei, constraint.accenti]


def _distance(operator: DistanceOperator) -> list[Any]:
    """Return a distance, and its unit if it has one."""
    return [operator.distance] if operator.unit is None else [operator.distance, operator.unit]


def _is_plain(value: Any) -> bool:
    if type(value) is int:
        return -LARGEST_INTEGER <= value < LARGEST_INTEGER
    return value is None or type(value) in (float, str, bool)


def _read_predicate(filters: Any) -> Predicate:
    return Predicate([Filter([_read_constraint(*parts) for parts in part]) for part in filters])


def _read_constraint(attribute: str, operator: Any = None, *rest: Any) -> Constraint:
    if operator is None:
        ((constraint,),) = parse(attribute)
        if constraint.columns:
            raise BrokerError(f"a constraint with a column: {attribute:.60}")
        return constraint
    if isinstance(operator, int):
        kind, data, crs, *further = rest
        value = _shape(kind, data, crs)
        if further == [OF_LINES]:
            return Constraint(attribute, LineRelationSet.from_mask(operator), value)
        if further:
            reach, *unit = further
            return Constraint(attribute, read_reach(reach, operator, *unit), value)
        return Constraint(attribute, RelationSet.from_mask(operator), value)
    if len(rest) == 2:
        kind, dumped = rest
        return Constraint(attribute, operator, type_named(kind).load(dumped))
    value, casei, accenti = rest
    return Constraint(
        attribute, operator, tuple(value) if isinstance(value, list) else value, casei=casei, accenti=accenti
    )


def _encode_own(value: Any) -> Any:
    if isinstance(value, Predicate):
        return _filters(value)
    if isinstance(value, MessageRows):
        value = value.batch
        if isinstance(value, list):
            return [{name: _sent(part) for name, part in message.items()} for message in value]
    if isinstance(value, pa.RecordBatch):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return memoryview(sink.getvalue())
    raise NotImplementedError(f"no form on the wire for {type(value).__name__}")


def _decode_own(kind: type, value: Any) -> Any:
    if kind is Predicate:
        return _read_predicate(value)
    if kind is MessageRows:
        return MessageRows(_read_messages(value) if isinstance(value, list) else _read_batch(value))
    raise NotImplementedError(f"no form on the wire for {kind.__name__}")


def travels(messages: Any) -> bool:
    """Return True if mappings can be sent as they are; others need columns.

    >>> travels([{"depth": 4, "place": Point(1, 2)}]), travels([{"depth": 1 << 70}])
    (True, False)
    """
    return all(_is_plain(value) or type(value) in SENT_TYPES for message in messages for value in message.values())


def _sent(value: Any) -> Any:
    """Return a value of a message as it is sent; of a list operators ask only whether there is one."""
    if isinstance(value, Region | Point | Circle | Line):
        return [SHAPES.index(type(value)), value.to_wkb(), None if value.crs is None else str(value.crs)]
    if type(value) is list:
        return []
    if not _is_plain(value):
        raise NotImplementedError(f"no form on the wire for {type(value).__name__} in a mapping")
    return value


def _read_messages(messages: list[Any]) -> list[Mapping[str, Any]]:
    """Return messages that were sent as mappings."""
    check_limit("attributes", max(map(len, messages), default=0), "a message")
    return [{_read_name(name): _read_value(value) for name, value in message.items()} for message in messages]


def _shape(kind: Any, data: Any, crs: Any) -> Region | Point | Circle | Line:
    if type(kind) is not int or not 0 <= kind < len(SHAPES):
        raise BrokerError(f"geometry of the unknown kind {kind!r:.60}")
    return SHAPES[kind].from_wkb(data, crs=crs)


def _read_name(name: Any) -> str:
    if type(name) is not str:
        raise BrokerError("an attribute whose name is no text")
    return name


def _read_value(value: Any) -> Any:
    if isinstance(value, list) and value:
        return _shape(*value)
    if not (value == [] or _is_plain(value)):
        raise BrokerError(f"a value of type {type(value).__name__} in a message")
    return value


def _read_batch(data: Any) -> pa.RecordBatch:
    if not isinstance(data, bytes):
        raise BrokerError("messages that are not an Arrow stream")
    check_expansion("a batch of messages", ipc_stream_bytes(io.BytesIO(data)), len(data))
    with pa.ipc.open_stream(data) as reader:
        batches = list(islice(reader, 2))
    if len(batches) != 1:
        raise BrokerError("need messages in one batch")
    batches[0].validate(full=True)
    return batches[0]


def decoder_of(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return a decoder of values of a type, in which predicates and messages may be."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_decode_own)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encode_own)
_DECODER: msgspec.msgpack.Decoder[Frame] = decoder_of(Frame)
