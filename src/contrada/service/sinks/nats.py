"""NatsSinkClient: records to a stream of JetStream."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from nats.errors import Error as NatsError
from nats.errors import MaxPayloadError
from nats.js.errors import APIError, NoStreamResponseError

from contrada.service.deliveries.outcomes import REASON_CHARACTERS, TAKEN, Outcome
from contrada.service.nats_access import connect_nats
from contrada.service.remotes import Remote
from contrada.service.sinks.records import SinkRecord

TOO_LARGE = 10054  # code of the server: the stream takes no message of this size


class NatsSinkClient:
    """Publishes records one after another; each waits for the acknowledgement of the stream that has its subject.

    The header Nats-Msg-Id lets the stream recognise a record that comes again within its window of duplicates.
    """

    def __init__(self, remote: Remote, timeout: float) -> None:
        self._remote, self._timeout = remote, timeout
        self._connection: Any = None

    async def send(self, records: Sequence[SinkRecord]) -> Outcome:
        """Send records."""
        taken = 0
        try:
            async with asyncio.timeout(2 * self._timeout):
                stream = (await self._connected()).jetstream(timeout=self._timeout)
            for record in records:
                headers = {**record.headers, "Nats-Msg-Id": record.mark}
                await stream.publish(self._remote.url.topic, record.body, timeout=self._timeout, headers=headers)
                taken += 1
            return Outcome(TAKEN)
        except MaxPayloadError:
            return Outcome(0, "the event is larger than the server takes", taken=taken, is_final=True)
        except NoStreamResponseError:
            return Outcome(0, f"no stream has the subject {self._remote.url.topic!r}", taken=taken)
        except APIError as error:
            reason = f"{error.description or error}"[:REASON_CHARACTERS]
            return Outcome(0, reason, taken=taken, is_final=error.err_code == TOO_LARGE)
        except (NatsError, OSError, TimeoutError) as error:
            await self.close()
            reason = str(error) or f"no answer within {self._timeout:g} s"
            return Outcome(0, f"{type(error).__name__}: {reason}"[:REASON_CHARACTERS], taken=taken)

    async def _connected(self) -> Any:
        if self._connection is None or not self._connection.is_connected:
            await self.close()
            self._connection = await connect_nats(self._remote, self._timeout)
        return self._connection

    async def close(self) -> None:
        """Close the connection; the next attempt makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(NatsError, OSError, TimeoutError):
                await connection.close()
