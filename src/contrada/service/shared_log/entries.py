"""What servers write into a shared log, and what each keeps of how far it has read it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from contrada.service.commands import (
    Acknowledge,
    DeleteSubscription,
    PutSubscription,
    PutSubscriptions,
    ServiceCommand,
    SetCursor,
    SetPaused,
    SetRetention,
    WriteRecords,
)
from contrada.service.core import NewSubscription
from contrada.service.shared_log.duties import Claim, Mark, NoteSnapshot, SetTerms, SharedTick
from contrada.service.shared_log.shared_log import LogRecord, LogUnit

MESSAGE, COMMAND, TICK = "message", "command", "tick"  # keys of records

AnyCommand: TypeAlias = (
    PutSubscription
    | PutSubscriptions
    | SetPaused
    | DeleteSubscription
    | Acknowledge
    | SetCursor
    | SetRetention
    | WriteRecords
    | SharedTick
    | Claim
    | Mark
    | NoteSnapshot
    | SetTerms
)


class EntryHead(msgspec.Struct, frozen=True, array_like=True):
    """Who wrote a record, as the how many-th of its own, and when, in milliseconds since 1970."""

    origin: str
    count: int
    at: int


class MessageHead(msgspec.Struct, frozen=True, array_like=True):
    """What a server notes about a message besides: `matches` are those of its table when that had `version` changes."""

    origin: str
    count: int
    at: int
    tenant: str
    id: str  # empty for a message without an id of its own
    format: str
    version: int
    matches: bytes


class MessageEntry(NamedTuple):
    """A message of the log."""

    head: MessageHead
    body: bytes

    @property
    def format(self) -> str:
        """The format of the post that it came in."""
        return self.head.format


class CommandEntry(NamedTuple):
    """A command of the log."""

    head: EntryHead
    command: ServiceCommand


_encode = msgspec.msgpack.Encoder().encode
_message_head = msgspec.msgpack.Decoder(MessageHead).decode
_entry_head = msgspec.msgpack.Decoder(EntryHead).decode
_command = msgspec.msgpack.Decoder(AnyCommand).decode


def message_record(head: MessageHead, body: bytes) -> LogRecord:
    """Return a message as a record."""
    return LogRecord(MESSAGE, _encode(head), body)


def command_record(head: EntryHead, command: ServiceCommand) -> LogRecord:
    """Return a command as a record."""
    key = TICK if isinstance(command, SharedTick) else COMMAND
    return LogRecord(key, _encode(head), _encode(_written(command)))


def read_entry(record: LogRecord) -> MessageEntry | CommandEntry | None:
    """Return what a record holds; None if no server wrote it."""
    try:
        if record.key == MESSAGE:
            return MessageEntry(_message_head(record.head), record.value)
        if record.key in (COMMAND, TICK):
            return CommandEntry(_entry_head(record.head), _command(record.value))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    return None


def mark_of(unit: LogUnit) -> str:
    """Return what tells a unit from those of other logs: its last record, by its writer and count."""
    entry = read_entry(unit.records[-1]) if unit.records else None
    return "" if entry is None else f"{entry.head.origin} {entry.head.count}"


def _written(command: ServiceCommand) -> ServiceCommand:
    """Return a command without what can be made from the rest of it."""
    if isinstance(command, PutSubscription):
        return msgspec.structs.replace(command, asked=_text(command.asked))
    if isinstance(command, PutSubscriptions):
        return msgspec.structs.replace(command, asked=[(key, _text(asked)) for key, asked in command.asked])
    return command


def _text(asked: NewSubscription) -> NewSubscription:
    return asked._replace(predicate=None)
