"""How clients of Kafka reach a cluster and log in."""

from __future__ import annotations

from typing import Any

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
