"""Problem details after RFC 9457: every answer of 400 and above is one JSON object that names the fault.

`CATALOGUE` lists all types of problems; the documentation and the OpenAPI document are made from it. A type is raised
by calling it:

>>> raise BAD_FILTER("expected a value after '='", line=1, column=9)
Traceback (most recent call last):
contrada.service.problems.Problem: Bad filter: expected a value after '='
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from contrada.errors import (
    ContradaError,
    CrsError,
    FilterError,
    FormatError,
    KeyInUseError,
    LimitError,
    RegionError,
    TableError,
    UnknownKeyError,
)

MEDIA_TYPE = "application/problem+json"
DETAIL_CHARACTERS = 2_000  # longer details are cut: a message may quote a filter or a name of any length

# Attributes of our errors that a problem repeats under the same name. `place` is the vertex at fault, as [x, y].
FAULT_MEMBERS = ("row", "attribute", "line", "column", "expected", "path", "part", "ring", "place")


class Problem(ContradaError):
    """An error that is answered as problem details.

    `members` are further members of the JSON object; a member that is None is left out. Without `type` the problem has
    the type of the catalogue that has this title, or `about:blank`.

    >>> Problem(404, "Not found", "no subscriber is called 'ann'").type
    '/problems/not-found'
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        type: str | None = None,
        instance: str | None = None,
        **members: Any,
    ) -> None:
        super().__init__(f"{title}: {detail}")
        self.status, self.title, self.instance = status, title, instance
        self.detail = detail if len(detail) <= DETAIL_CHARACTERS else f"{detail[: DETAIL_CHARACTERS - 3]}..."
        self.type = type or _TYPES_BY_TITLE.get(title, "about:blank")
        self.members = {name: value for name, value in members.items() if value is not None}

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object: the members of the RFC, then those that name the fault.

        >>> BAD_REGION("row 3: the ring crosses itself", row=3, ring=0, place=(1.0, 2.0)).as_dict()
        {'type': '/problems/bad-region', 'title': 'Bad region', 'status': 400, 'detail': 'row 3: the ring crosses
        itself', 'row': 3, 'ring': 0, 'place': [1.0, 2.0]}
        """
        head = {"type": self.type, "title": self.title, "status": self.status, "detail": self.detail}
        if self.instance is not None:
            head["instance"] = self.instance
        return {name: _plain(value) for name, value in (head | self.members).items()}

    def body(self) -> bytes:
        """Return the JSON text; it can be made for every value of every member."""
        return msgspec.json.encode(self.as_dict())

    def headers(self) -> dict[str, str]:
        """Return the headers of the answer: media type, and where they apply `Retry-After` and `WWW-Authenticate`.

        >>> TOO_MANY_REQUESTS("at most 10 requests per second", retry_after=0.2).headers()["Retry-After"]
        '1'
        """
        found = {"Content-Type": MEDIA_TYPE}
        if "retry_after" in self.members:
            found["Retry-After"] = str(max(1, math.ceil(self.members["retry_after"])))
        if self.status == 401:
            found["WWW-Authenticate"] = 'Bearer realm="contrada"'
        return found


class ProblemType(msgspec.Struct, frozen=True):
    """A type of problem: `/problems/{name}` is its URI; status and title are the same for all its problems."""

    name: str
    status: int
    title: str
    meaning: str

    @property
    def uri(self) -> str:
        """The stable relative URI of the type."""
        return f"/problems/{self.name}"

    def __call__(self, detail: str, **members: Any) -> Problem:
        """Return a problem of this type."""
        return Problem(self.status, self.title, detail, type=self.uri, **members)


BAD_REQUEST = ProblemType("bad-request", 400, "Bad request", "The request cannot be understood; `detail` says why.")
BAD_PARAMETER = ProblemType(
    "bad-parameter", 400, "Bad parameter", "A parameter of the path or query, or a header, has a wrong value."
)
BAD_BODY = ProblemType(
    "bad-body", 400, "Bad body", "The body, or a message in it, cannot be read; `row` counts messages from 0."
)
BAD_FILTER = ProblemType(
    "bad-filter",
    400,
    "Bad filter",
    "A filter cannot be read or built; `line` and `column` (from 1) or the JSON pointer `path` give the place.",
)
BAD_REGION = ProblemType(
    "bad-region",
    400,
    "Bad region",
    "A geometry is not a valid region; `row`, `part` and `ring` (from 0) and the vertex `place` give the fault.",
)
BAD_CRS = ProblemType(
    "bad-crs", 400, "Bad coordinate reference system", "A coordinate reference system is unknown or does not fit."
)
BAD_WEBHOOK = ProblemType("bad-webhook", 400, "Bad webhook", "The URL of a webhook is not allowed.")
UNAUTHORIZED = ProblemType(
    "unauthorized", 401, "Unauthorized", "The request has no key or token, or one that is unknown, expired or revoked."
)
FORBIDDEN = ProblemType("forbidden", 403, "Forbidden", "The key or token lacks the scope that the request needs.")
NOT_FOUND = ProblemType("not-found", 404, "Not found", "Nothing has this path or name for this tenant.")
UNKNOWN_KEY = ProblemType("unknown-key", 404, "Unknown key", "No subscription of this tenant has the key.")
METHOD_NOT_ALLOWED = ProblemType("method-not-allowed", 405, "Method not allowed", "The path has no such method.")
NOT_ACCEPTABLE = ProblemType(
    "not-acceptable", 406, "Not acceptable", "The answer has none of the media types that the request accepts."
)
KEY_IN_USE = ProblemType("key-in-use", 409, "Key in use", "The key or name is taken.")
REQUEST_TIMEOUT = ProblemType(
    "request-timeout", 408, "Request timeout", "The body of the request did not come in time."
)
CONFLICT = ProblemType("conflict", 409, "Conflict", "The request does not fit the present state.")
GONE = ProblemType(
    "gone", 410, "Gone", "Retention removed events after the given place; `oldest` is the oldest sequence that is kept."
)
PRECONDITION_FAILED = ProblemType("precondition-failed", 412, "Precondition failed", "The key or name is taken.")
TOO_LARGE = ProblemType("too-large", 413, "Too large", "The request exceeds a limit; `detail` names the limit.")
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    "unsupported-media-type", 415, "Unsupported media type", "The content type of the body is not one that is read."
)
REJECTED = ProblemType(
    "rejected", 422, "Rejected", "No message of the request was taken; `rejected` has the reason for each."
)
TOO_MANY_REQUESTS = ProblemType(
    "too-many-requests", 429, "Too many requests", "The key made too many requests; try again after `retry_after` s."
)
TOO_MANY_CONNECTIONS = ProblemType(
    "too-many-connections", 429, "Too many connections", "The tenant has too many open connections."
)
INTERNAL_ERROR = ProblemType("internal-error", 500, "Internal error", "A fault of the server; its log has the details.")
UNAVAILABLE = ProblemType(
    "unavailable", 503, "Unavailable", "The server cannot take the request now; try again after `retry_after` s."
)
NOT_READY = ProblemType("not-ready", 503, "Not ready", "The server is starting or stopping.")
STORAGE_FAILED = ProblemType(
    "storage-failed", 503, "Storage failed", "The request was not stored, for instance because the disk is full."
)

CATALOGUE: tuple[ProblemType, ...] = tuple(kind for kind in globals().values() if isinstance(kind, ProblemType))
_TYPES_BY_TITLE = {kind.title: kind.uri for kind in CATALOGUE}

# The first class that an error is an instance of decides.
_TYPES_OF_ERRORS: tuple[tuple[type[ContradaError], ProblemType], ...] = (
    (FilterError, BAD_FILTER),
    (RegionError, BAD_REGION),
    (CrsError, BAD_CRS),
    (LimitError, TOO_LARGE),
    (FormatError, BAD_BODY),
    (UnknownKeyError, UNKNOWN_KEY),
    (KeyInUseError, KEY_IN_USE),
)


def problem_of(error: ContradaError, **members: Any) -> Problem:
    """Return the problem that answers an error; places that the error or its cause carries become members.

    `members` replace those of the error. The fault of a saved table is the server's, and its message names a directory:
    the answer hides both.

    >>> from contrada.errors import LanguageError
    >>> problem = problem_of(LanguageError("unexpected end", line=2, column=7))
    >>> problem.status, problem.members
    (400, {'line': 2, 'column': 7})
    """
    if isinstance(error, Problem):
        merged = error.members | members
        return Problem(error.status, error.title, error.detail, type=error.type, instance=error.instance, **merged)
    if isinstance(error, TableError):
        return INTERNAL_ERROR("the server cannot read its saved tables", **members)
    kind = next((kind for base, kind in _TYPES_OF_ERRORS if isinstance(error, base)), BAD_REQUEST)
    return kind(str(error), **_places(error) | members)


def _places(error: BaseException) -> dict[str, Any]:
    """Return the places that an error carries: a filter's line and column, and the vertex of a region in the filter."""
    found = {name: getattr(error, name, None) for name in FAULT_MEMBERS}
    named = {name: value for name, value in found.items() if value is not None and value != ()}
    return _places(error.__cause__) | named if isinstance(error.__cause__, ContradaError) else named


def problems_table() -> str:
    """Return the catalogue as a Markdown table."""
    rows = (f"| `{kind.uri}` | {kind.status} | {kind.title} | {kind.meaning} |" for kind in CATALOGUE)
    return "\n".join(("| type | status | title | meaning |", "|---|---|---|---|", *rows))


def _plain(value: Any) -> Any:
    """Return a value that msgspec can always encode: no lone surrogates, no long integers, no foreign objects."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode()
    if isinstance(value, int):
        return int(value) if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # a NumPy scalar
        return _plain(value.item())
    return _plain(str(value))
