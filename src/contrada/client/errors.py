"""What can go wrong between a client and a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contrada.errors import ContradaError


class ClientError(ContradaError):
    """A request of a client failed; the base of all errors of clients."""


class UnreachableError(ClientError):
    """The server could not be reached, or lost the connection, for as long as the client is told to try."""


class ProtocolError(ClientError):
    """The server answered what this client cannot read."""


class ProblemError(ClientError):
    """The server refused a request, with problem details after RFC 9457.

    `members` are the further members of the answer, such as the line and the column of a fault in a filter.
    """

    def __init__(self, status: int, title: str, detail: str, members: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {title}: {detail}" if detail else f"{status} {title}")
        self.status, self.title, self.detail, self.members = status, title, detail, dict(members)


class ResetError(ClientError):
    """Matches are gone: retention removed them before they were taken, or the server lost its state.

    The iteration may go on; its next match is of the message `oldest` or a later one.
    """

    def __init__(self, oldest: int) -> None:
        super().__init__(f"matches before message {oldest} are gone; the oldest message that is kept is {oldest}")
        self.oldest = oldest
