"""Build the command that installs an optional part of this package.

Contrada is on no package index, so `pip install 'contrada[spark]'` would fail: pip needs the clone, wheel or address
that this installation came from. If that is gone or unknown, the command names the required packages themselves.
"""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "contrada"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation; "" is the package without extras.

    >>> " -m pip install " in install_command("spark")
    True
    """
    return f"{shlex.quote(sys.executable or 'python')} -m pip install {_target(extra)}"


def missing(what: str, extra: str) -> str:
    """Return the message for a part that is not installed, with the command that installs it.

    >>> print(missing("plots need Matplotlib", "experiments"))
    plots need Matplotlib; to install it: ... -m pip install ...
    """
    return f"{what}; to install it: {install_command(extra)}"


def _target(extra: str) -> str:
    """Return the arguments of `pip install`, quoted for a shell."""
    suffix = f"[{extra}]" if extra else ""
    clone = _clone()
    if clone is not None:
        return f"-e {shlex.quote(f'{clone}{suffix}')}"
    origin = _origin()
    url = "" if origin is None else str(origin.get("url", ""))
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        if path.exists():
            return shlex.quote(f"{path}{suffix}")
    elif url:
        return shlex.quote(f"{NAME}{suffix} @ {_address(url, origin or {})}")
    packages = " ".join(shlex.quote(f"{one.name}{one.specifier}") for one in requirements(extra) if extra)
    return packages or f"-e {shlex.quote(f'.{suffix}')}  (in a clone of the repository)"


def _clone() -> Path | None:
    """Return the clone that this module runs from, or None."""
    folder = Path(__file__).resolve().parents[2]
    try:
        is_ours = f'name = "{NAME}"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return folder if is_ours else None


def _origin() -> dict[str, Any] | None:
    """Return where pip installed the package from, as PEP 610 records it; None for an index, or if not recorded."""
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
        found = None if text is None else json.loads(text)
    except (metadata.PackageNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _address(url: str, origin: dict[str, Any]) -> str:
    """Return a requirement's address: of a repository with its system and commit, of an archive as it is."""
    system = origin.get("vcs_info")
    if not isinstance(system, dict):
        return url
    commit = system.get("commit_id")
    return f"{system.get('vcs', 'git')}+{url}" + (f"@{commit}" if commit else "")


def requirements(extra: str) -> list[Requirement]:
    """Return the requirements of the installed package: the unconditional ones for "", else those of the extra alone.

    >>> requirements("no such extra")
    []
    """
    from packaging.requirements import Requirement

    try:
        declared = [Requirement(line) for line in metadata.requires(NAME) or ()]
    except metadata.PackageNotFoundError:
        return []
    always = [one for one in declared if one.marker is None or one.marker.evaluate({"extra": ""})]
    if not extra:
        return always
    return [one for one in declared if one not in always and one.marker and one.marker.evaluate({"extra": extra})]
