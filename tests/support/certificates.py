"""Certificates of an authority of our own, for servers on 127.0.0.1."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey


class CertificateFiles(NamedTuple):
    """An authority, a certificate that it signed for 127.0.0.1, its key, the key with a password, and another key."""

    ca: Path
    certificate: Path
    key: Path
    locked: Path
    other: Path

    @property
    def flags(self) -> dict[str, str]:
        """The settings that name certificate and key."""
        return {"tls_cert": str(self.certificate), "tls_key": str(self.key)}


def write_certificates(directory: Path) -> CertificateFiles:
    """Make an authority and what it signs."""
    authority, own, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    found = CertificateFiles(*(directory / f"{name}.pem" for name in CertificateFiles._fields))
    found.ca.write_bytes(certificate_of("authority", authority, "authority", authority))
    found.certificate.write_bytes(certificate_of("server", own, "authority", authority))
    for path, key, password in ((found.key, own, None), (found.locked, own, b"secret"), (found.other, other, None)):
        path.write_bytes(key_text(key, password))
    return found


def certificate_of(name: str, key: Key, issuer: str, signer: Key) -> bytes:
    """Return a certificate in PEM."""
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (name, issuer)]
    now, address = datetime.now(UTC), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    found = (
        x509.CertificateBuilder()
        .subject_name(named[0])
        .issuer_name(named[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return found.public_bytes(serialization.Encoding.PEM)


def key_text(key: Key, password: bytes | None = None) -> bytes:
    """Return a key in PEM."""
    how = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
