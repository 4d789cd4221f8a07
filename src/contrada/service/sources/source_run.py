"""SourceRun: reads one topic and publishes its records, each once, for as long as the server runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from contrada.cancelling import end_tasks
from contrada.errors import FormatError
from contrada.service.core import Published
from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.deliveries.progress import FailureView
from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.intake import Post
from contrada.service.service import Service, StoreRecord
from contrada.service.sources.letters import SourceLetter, SourceLetters
from contrada.service.sources.records import SourceClient, SourceProgress, SourceRecord, post_from_record
from contrada.service.table_settings import FORMATS, SourceTable

SOURCE = "source"  # kind of the records
REASON_CHARACTERS = 500
STEADY = 60_000  # milliseconds of an open connection after which failures are counted anew

log = logging.getLogger(__name__)


@dataclass
class SourceCounts:
    """Counts since the start, of all sources."""

    records: int = 0
    messages: int = 0
    repeated: int = 0  # records that were published before
    dead: int = 0
    discarded: int = 0  # dead letters that made room for later ones
    failed: int = 0  # connections and writes that failed


@dataclass
class SourceTools:
    """Everything that sources share; `most_bytes` is the largest body of a record."""

    service: Service
    policy: RetryPolicy
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    most_bytes: int
    most_letters: int
    counts: SourceCounts = field(default_factory=SourceCounts)


class SourceView(msgspec.Struct, frozen=True):
    """A source as an administrator sees it; `lag` is None if the engine does not tell."""

    table: SourceTable
    state: str
    lag: int | None
    places: dict[str, int]
    dead_letters: int
    failing: FailureView | None


class SourceRun:
    """One source. What it has published and how far it is are written in one transaction.

    So a record that comes again, after a crash of either side or because somebody set the group back, is known by its
    place and goes nowhere.
    """

    def __init__(self, table: SourceTable, client: SourceClient, tools: SourceTools) -> None:
        self.table, self._client, self._tools = table, client, tools
        self._letters = SourceLetters(tools.service, table.name)
        self._progress = SourceProgress()
        self._writing = asyncio.Lock()  # what is published and replayed changes one record
        self._task: asyncio.Task[None] | None = None
        self._failure: FailureView | None = None
        self._opened: int | None = None  # when the connection was opened, while it is

    # --- life ---

    def start(self) -> None:
        """Begin to read."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; records that are not published yet are read again after the next start."""
        if self._task is not None:
            await end_tasks(self._task)
        await self._client.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._read_all()
            except Exception as error:
                self._note_failure(error)
            self._opened = None
            try:
                await self._client.close()
            except Exception as error:
                log.warning("source %r: %s", self.table.name, error)
            assert self._failure is not None
            await self._tools.sleep(self._tools.policy.delay(self._failure.attempts, self._tools.random()))

    def _note_failure(self, error: Exception) -> None:
        reason = (str(error) or type(error).__name__)[:REASON_CHARACTERS]
        old, now = self._failure, self._tools.clock()
        if self._opened is not None and now - self._opened > STEADY:
            old = None
        attempts, since = (1, now) if old is None else (old.attempts + 1, old.since)
        self._failure = FailureView(attempts, since, reason)
        self._tools.counts.failed += 1
        if old is None or old.reason != reason:
            log.warning("source %r fails: %s", self.table.name, reason)

    async def _read_all(self) -> None:
        """Read and publish until something fails."""
        async with self._writing:
            self._progress = await self.load()  # a write whose answer was lost may have been made: the store knows
        await self._client.open(self._progress.places)
        self._opened = self._tools.clock()
        while True:
            records = await self._client.read()
            async with self._writing:
                await self._note_moved()
                await self._publish(records)
            await self._client.commit(records)
            self._failure = None

    async def load(self) -> SourceProgress:
        """Return how far the source is, by the store."""
        found = dict(await self._tools.service.record_page(SOURCE, self.table.name, "", 1)).get(self.table.name)
        return SourceProgress() if found is None else msgspec.msgpack.decode(found, type=SourceProgress)

    # --- publishing ---

    async def _note_moved(self) -> None:
        """Keep where lanes start that start elsewhere than where the source was."""
        moved = self._client.moved()
        if moved:
            progress = self._progress.moved(moved)
            await self._tools.service.write_records([self._record(progress)])
            self._progress = progress

    async def _publish(self, records: Sequence[SourceRecord]) -> None:
        """Publish records, and keep the bad ones as dead letters, in one transaction."""
        fresh = self._progress.fresh(records)
        counts = self._tools.counts
        counts.records += len(records)
        counts.repeated += len(records) - len(fresh)
        if not fresh:
            return
        reasons: dict[int, str] = {}  # why records are not published, by place
        posts: list[Post] = []
        sent: list[int] = []  # places of the records of the posts
        for place, record in enumerate(fresh):
            try:
                posts.append(self._post(record, self._progress.origin(self.table.name, record)))
                sent.append(place)
            except FormatError as error:
                reasons[place] = str(error)
        made: list[SourceProgress] = []

        def records_of(answers: list[Published]) -> list[StoreRecord]:
            bad = reasons | {place: why for place, one in zip(sent, answers, strict=True) if (why := _refused(one))}
            letters = self._new_letters(fresh, bad)
            after = self._progress.after(fresh, self.table.batch)
            count = len(letters)
            made.append(replace(after, letters=after.letters + count, numbered=after.numbered + count))
            return [*map(self._letters.put, letters), self._record(made[0])]

        answers = await self._tools.service.publish_together(self.table.tenant, posts, records_of)
        counts.messages += sum(one.taken for one in answers)
        counts.dead += made[0].letters - self._progress.letters
        self._progress = made[0]
        await self._make_room()

    def _post(self, record: SourceRecord, origin: str | None) -> Post:
        size, most = len(record.body), self._tools.most_bytes
        if size > most:
            raise FormatError(f"the record has {size:,} bytes; limits.body_bytes is {most:,}")
        return post_from_record(record, FORMATS[self.table.format], origin)

    def _record(self, progress: SourceProgress) -> StoreRecord:
        return SOURCE, self.table.name, msgspec.msgpack.encode(progress)

    # --- dead letters ---

    def _new_letters(self, records: Sequence[SourceRecord], reasons: dict[int, str]) -> list[SourceLetter]:
        at, first, letters = self._tools.clock(), self._progress.numbered + 1, []
        for number, place in enumerate(sorted(reasons), first):
            origin = self._progress.origin(self.table.name, records[place])
            reason = reasons[place][:REASON_CHARACTERS]
            letters.append(SourceLetter.of(number, at, reason, records[place], origin))
        return letters

    async def _make_room(self) -> None:
        """Remove the oldest dead letters if there are too many."""
        while (too_many := self._progress.letters - self._tools.most_letters) > 0:
            oldest, _ = await self._letters.page(None, too_many)
            progress = replace(self._progress, letters=self._progress.letters - len(oldest) if oldest else 0)
            await self._tools.service.write_records([*map(self._letters.removal, oldest), self._record(progress)])
            self._progress = progress
            self._tools.counts.discarded += len(oldest)

    async def dead_letters(self, after: str | None, limit: int) -> tuple[list[SourceLetter], str | None]:
        """Return records that were not published, oldest first, after an id, and the id to go on after."""
        return await self._letters.page(after, limit)

    async def replay(self, id: str | None, limit: int) -> ReplayAnswer:
        """Publish one dead letter again, or the oldest ones up to the first that is refused."""
        taken = 0
        async with self._writing:
            self._progress = await self.load()
            letters = [await self._letters.get(id)] if id is not None else (await self._letters.page(None, limit))[0]
            for letter in letters:
                reason = await self._replay(letter)
                if reason:
                    return ReplayAnswer(taken, self._progress.letters, reason)
                taken += 1
        return ReplayAnswer(taken, self._progress.letters)

    async def _replay(self, letter: SourceLetter) -> str:
        """Publish a letter and remove it, in one transaction; return why it was refused, if it was."""
        try:
            post = self._post(letter.record(), letter.origin)
        except FormatError as error:
            return str(error)
        progress = replace(self._progress, letters=max(0, self._progress.letters - 1))

        def records_of(answers: list[Published]) -> list[StoreRecord]:
            return [] if _refused(answers[0]) else [self._letters.removal(letter), self._record(progress)]

        (answer,) = await self._tools.service.publish_together(self.table.tenant, [post], records_of)
        if reason := _refused(answer):
            return reason
        self._tools.counts.messages += answer.taken
        self._progress = progress
        return ""

    # --- how far it is ---

    @property
    def view(self) -> SourceView:
        """The source as an administrator sees it."""
        state = "reading" if self._opened is not None else "starting" if self._failure is None else "failing"
        lag = None if self._opened is None else self._client.lag
        failing = self._failure if self._opened is None else None
        progress = self._progress
        return SourceView(self.table, state, lag, dict(progress.places), progress.letters, failing)


def _refused(answer: Published) -> str:
    """Return why messages of a post were refused; an empty text if none was."""
    bad = [item for item in answer.rejected if not item.is_part]
    if len(bad) == 1 and not answer.first and not answer.duplicates:
        return bad[0].reason
    return "; ".join(f"message {item.row}: {item.reason}" for item in bad)
