"""Programs that tests run: from PATH, or fetched once into build/engines.

Nothing here names a host: the settings of apt and of the tools that fetch apply.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

CACHE = Path(__file__).parents[2] / "build" / "engines"
FETCHING = 600  # seconds


class NoProgramError(Exception):
    """A program cannot be had here; the text says why."""


def program(names: Sequence[str], cache: Path, fetch: Callable[[Path, Path], None]) -> Path:
    """Return the first of these programs on PATH, or the one that `fetch(place, cache)` puts into the cache.

    It is kept there by the first of the names. Processes that need it at once fetch it once.
    """
    for name in names:
        installed = shutil.which(name) or shutil.which(name, path="/usr/sbin")
        if installed is not None:
            return Path(installed)
    kept = cache / names[0]
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{names[0]}.lock"), tempfile.TemporaryDirectory(dir=cache) as place:
            if not kept.exists():
                fetch(Path(place), cache)
    return kept


def run(command: list[str], place: Path, **variables: str) -> str:
    """Run a command in a directory and return what it wrote; raise NoProgramError if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=FETCHING,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoProgramError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise NoProgramError(f"{' '.join(command[:3])}: {done.stderr.strip()[-300:]}")
    return done.stdout


def unpack_package(package: str, place: Path, unpacked: Path) -> str:
    """Unpack a package of Debian or Ubuntu and what its program misses here; return the value of LD_LIBRARY_PATH.

    What it misses is what apt would install with it, as far as it holds libraries or fonts. Its own further packages,
    such as chromium-common, are unpacked beside it also where they are installed: the program looks for files there.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NoProgramError(f"there is no {package}, and no apt-get to fetch it with")
    told = run(["apt-get", "install", "--simulate", "--no-install-recommends", package], place)
    missing = {line.split()[1] for line in told.splitlines() if line.startswith("Inst ")}
    depends = run(["apt-cache", "depends", "--no-recommends", "--no-suggests", package], place)
    own = {name for name in depends.split() if name.startswith(f"{package}-")}
    needed = own | {name for name in missing if name.startswith(("lib", "font"))}
    run(["apt-get", "download", package, *sorted(needed)], place)
    for file in sorted(place.glob("*.deb")):
        run(["dpkg", "-x", str(file), str(unpacked)], place)
    folders = {
        path.parent for path in unpacked.rglob("lib/*-linux-*/**/lib*.so*")
    }  # some libraries have one of their own
    return ":".join(map(str, sorted(folders)))


def write_script(name: str, text: str, place: Path, cache: Path) -> None:
    """Put a shell script that starts a program into the cache, whole or not at all."""
    script = place / name
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    script.rename(cache / name)
