"""How clients of Kafka reach a cluster and log in."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import KafkaConnectionError, KafkaError

from contrada.service.remotes import Remote


def kafka_access(remote: Remote) -> dict[str, Any]:
    """Return the arguments of a producer or consumer; a user logs in by SCRAM-SHA-512."""
    tls = remote.tls()
    access: dict[str, Any] = {
        "bootstrap_servers": remote.url.addresses,
        "client_id": "contrada",
        "security_protocol": "PLAINTEXT" if tls is None else "SSL",
        "ssl_context": tls,
    }
    if remote.user is not None:
        access |= {
            "security_protocol": "SASL_PLAINTEXT" if tls is None else "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": remote.user,
            "sasl_plain_password": remote.password or "",
        }
    return access


async def kafka_fault(remote: Remote, error: BaseException, timeout: float) -> str:
    """Return what an error means.

    Of a cluster that cannot be reached the library says only that: then its servers are called once more, and what the
    first one that refuses says is returned.
    """
    told = str(error) or f"no answer within {timeout:g} s"
    if not isinstance(error, KafkaConnectionError):
        return f"{type(error).__name__}: {told}"
    access = kafka_access(remote)
    del access["bootstrap_servers"]
    for host, port in remote.url.servers:
        try:
            async with asyncio.timeout(timeout):
                connection = await create_conn(host, port, request_timeout_ms=int(timeout * 1_000), **access)
            connection.close()
        except KafkaConnectionError:
            continue
        except (KafkaError, OSError, TimeoutError) as fault:
            return f"{host}:{port}: {str(fault) or f'no answer within {timeout:g} s'}"
    return f"{told}; does it ask for TLS, or for a user?"
