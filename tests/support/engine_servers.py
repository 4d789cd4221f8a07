"""Servers of NATS and MQTT of our own for tests, on free ports of the loopback interface.

The programs come from PATH, or are fetched once into build/engines: nats-server by `go install`, Mosquitto by
`apt-get download`. Nothing here names a host: the settings of Go and apt apply.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from certificates import CertificateFiles
from console import wait_for
from fetched_programs import CACHE, NoProgramError, program, run, unpack_package, write_script
from server_process import free_port

NATS = "github.com/nats-io/nats-server/v2@v2.15.2"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
MOSQUITTO = "mosquitto"  # the package of Debian and Ubuntu
STARTING = 60  # seconds


def nats_program(cache: Path = CACHE) -> Path:
    """Return nats-server from PATH or the cache, or build it; raise NoProgramError if that fails."""
    return program(["nats-server"], cache, _build_nats)


def s3_program(cache: Path = CACHE) -> Path:
    """Return versitygw from PATH or the cache, or build it; raise NoProgramError if that fails."""
    return program(["versitygw"], cache, _build_versitygw)


def mosquitto_program(cache: Path = CACHE) -> Path:
    """Return mosquitto from PATH or the cache, or fetch it; raise NoProgramError if that fails."""
    return program([MOSQUITTO], cache, _fetch_mosquitto)


def _build_nats(place: Path, cache: Path) -> None:
    _build("nats-server", NATS, place, cache)


def _build_versitygw(place: Path, cache: Path) -> None:
    _build("versitygw", VERSITYGW, place, cache)


def _build(name: str, module: str, place: Path, cache: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise NoProgramError(f"there is no {name}, and no Go to build it with")
    run([go, "install", module], place, GOBIN=str(place))
    (place / name).rename(cache / name)


def _fetch_mosquitto(place: Path, cache: Path) -> None:
    """Unpack the package and the libraries that the program misses, and write a script that starts it."""
    unpacked = cache / "mosquitto-files"
    libraries = unpack_package(MOSQUITTO, place, unpacked)
    started = f'LD_LIBRARY_PATH={libraries} exec {unpacked}/usr/sbin/mosquitto "$@"'
    write_script(MOSQUITTO, started, place, cache)


class EngineServer:
    """A server that can be killed and started again on the same port and the same directory."""

    def __init__(self, command: list[str], port: int, log: Path) -> None:
        self._command, self.port, self._log = command, port, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with self._log.open("ab") as log:
            process = self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_for(lambda: self._answers() or process.poll() is not None, STARTING, self._log.read_text)
        assert process.poll() is None, f"the server did not start:\n{self._log.read_text()[-3000:]}"

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """Kill the server as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the server to end."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stop the server without a word to its clients; `resume` lets it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a server go on that was paused."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(STARTING)


def nats_server(
    place: Path,
    password: str | None = None,
    tls: CertificateFiles | None = None,
    *,
    sync: str = "always",
    monitor_port: int | None = None,
) -> EngineServer:
    """Return a server of NATS with JetStream that writes to disk before it acknowledges; it is not started.

    With a password it knows the user `ann` alone; with certificates it speaks TLS alone. `sync` is another interval
    between writes to disk.
    """
    port, config = free_port(), place / "nats.conf"
    config.write_text(
        f'listen: "127.0.0.1:{port}"\n'
        f'jetstream {{ store_dir: "{place}/jetstream", sync_interval: {sync} }}\n'
        + ("" if monitor_port is None else f'http: "127.0.0.1:{monitor_port}"\n')
        + ("" if password is None else f'authorization {{ user: ann, password: "{password}" }}\n')
        + ("" if tls is None else f'tls {{ cert_file: "{tls.certificate}", key_file: "{tls.key}" }}\n')
    )
    return EngineServer([str(nats_program()), "-c", str(config)], port, place / "nats.log")


def nats_cluster(place: Path) -> list[EngineServer]:
    """Return three servers of NATS that keep streams together; they are not started."""
    routes = [free_port() for _ in range(3)]
    servers = []
    for number, route in enumerate(routes):
        folder, port = place / f"n{number}", free_port()
        folder.mkdir()
        (folder / "nats.conf").write_text(
            f'server_name: n{number}\nlisten: "127.0.0.1:{port}"\njetstream {{ store_dir: "{folder}/jetstream" }}\n'
            f'cluster {{ name: test, listen: "127.0.0.1:{route}", '
            f"routes: [{', '.join(f'nats://127.0.0.1:{one}' for one in routes)}] }}\n"
        )
        servers.append(EngineServer([str(nats_program()), "-c", str(folder / "nats.conf")], port, folder / "nats.log"))
    return servers


def s3_server(place: Path, key: str, secret: str) -> EngineServer:
    """Return a server of S3 that keeps its buckets as directories below `place / "s3"`; it is not started."""
    port, buckets = free_port(), place / "s3"
    buckets.mkdir()
    command = [str(s3_program()), "--access", key, "--secret", secret, "--port", f"127.0.0.1:{port}"]
    return EngineServer([*command, "posix", str(buckets)], port, place / "s3.log")


def mosquitto_server(place: Path, password: str | None = None, tls: CertificateFiles | None = None) -> EngineServer:
    """Return a server of MQTT that saves its state after every change; it is not started.

    With a password it knows the user `ann` alone; with certificates it speaks TLS alone.
    """
    port, config = free_port(), place / "mosquitto.conf"
    access = "allow_anonymous true\n"
    if password is not None:
        known = place / "passwords"
        known.write_text(f"ann:{_mosquitto_hash(password)}\n")
        known.chmod(0o600)
        access = f"allow_anonymous false\npassword_file {known}\n"
    config.write_text(
        f"listener {port} 127.0.0.1\n{access}persistence true\npersistence_location {place}/\n"
        "autosave_on_changes true\nautosave_interval 1\nmax_queued_messages 0\n"
        + ("user root\n" if os.geteuid() == 0 else "")
        + ("" if tls is None else f"certfile {tls.certificate}\nkeyfile {tls.key}\n")
    )
    return EngineServer([str(mosquitto_program()), "-c", str(config)], port, place / "mosquitto.log")


def _mosquitto_hash(password: str) -> str:
    """Return a password as the file of Mosquitto has it: PBKDF2 with SHA-512."""
    salt, rounds = os.urandom(12), 101
    found = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds)
    return f"$7${rounds}${base64.b64encode(salt).decode()}${base64.b64encode(found).decode()}"
