"""Examine the machine and the installed packages for `contrada doctor`, and print the report.

The requirements are read from the installed package, so the report always agrees with pyproject.toml.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path

import typer
from packaging.requirements import Requirement

from contrada import __version__, installation, jit
from contrada.amounts import byte_size
from contrada.cli.java import Java, find_java, install_command
from contrada.geometry.pool import cores
from contrada.installation import requirements

MIN_PYTHON_VERSION = (3, 11)
CORE = "regions and relations"
# Name, the extra that installs it, and whether it needs Java.
FEATURES = (
    (CORE, "", False),
    ("Spark pipeline", "spark", True),
    ("broker", "broker", False),
    ("experiments", "experiments", False),
    ("tests", "dev", False),
)


@dataclass(frozen=True)
class Capability:
    """A feature of the package: ready, or what is missing and the commands that install it."""

    name: str
    missing: tuple[str, ...]
    install: tuple[str, ...]

    @property
    def is_ready(self) -> bool:
        """Return True if nothing is missing."""
        return not self.missing


@dataclass(frozen=True)
class DoctorReport:
    """Everything that `contrada doctor` prints."""

    contrada: str
    python: str
    executable: str
    system: str
    cores: int
    memory: int | None
    java: Java
    cache: jit.CacheState | None
    packages: dict[str, str | None]
    features: tuple[Capability, ...]

    @property
    def core_is_ready(self) -> bool:
        """Return True if regions can be created and related on this machine."""
        return self.features[0].is_ready

    def to_json(self) -> str:
        """Return the report as one JSON object; every feature and Java have a member `ready`."""
        fields = asdict(self)
        fields["java"] = {**self.java._asdict(), "ready": self.java.is_ready, "complaint": self.java.complaint}
        fields["cache"] = None if self.cache is None else self.cache._asdict()
        fields["features"] = [{**asdict(feature), "ready": feature.is_ready} for feature in self.features]
        return json.dumps(fields, indent=2, default=str)


def examine() -> DoctorReport:
    """Examine the machine and the installed packages; compiles nothing and changes nothing."""
    java = find_java()
    required = {extra: requirements(extra) for _, extra, _ in FEATURES}
    names = sorted({requirement.name for group in required.values() for requirement in group})
    return DoctorReport(
        contrada=__version__,
        python=platform.python_version(),
        executable=sys.executable,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=cores(),
        memory=usable_memory(),
        java=java,
        cache=kernel_cache(),
        packages={name: installed_version(name) for name in names},
        features=tuple(
            examine_feature(name, extra, required[extra], java if needs_java else None)
            for name, extra, needs_java in FEATURES
        ),
    )


def installed_version(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def examine_feature(name: str, extra: str, required: list[Requirement], java: Java | None) -> Capability:
    """Compare the requirements of a feature with what is installed."""
    missing: list[str] = []
    install: list[str] = []
    if faults := [(r, fault) for r in required if (fault := package_fault(r, import_it=name == CORE))]:
        missing += [fault for _, fault in faults]
        wanted = " ".join(shlex.quote(f"{r.name}{r.specifier}") for r, _ in faults)
        install.append(
            installation.install_command(extra) if extra else f"{shlex.quote(sys.executable)} -m pip install {wanted}"
        )
    if name == CORE and not required:
        missing.append("contrada runs from a folder and is not installed, so its requirements are unknown")
        install.append(installation.install_command(""))
    if name == CORE and sys.version_info < MIN_PYTHON_VERSION:
        missing.append("Python {}.{} or newer".format(*MIN_PYTHON_VERSION))
    if java is not None and java.fault is not None:
        missing.append(java.fault)
        install.append(install_command())
    return Capability(name, tuple(missing), tuple(install))


def package_fault(requirement: Requirement, *, import_it: bool) -> str | None:
    """Return the fault of a package, or None. The core's packages are also imported: some fail only then."""
    version = installed_version(requirement.name)
    if version is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} {version} is installed, {requirement.specifier} is needed"
    if import_it:
        try:
            import_module(requirement.name)
        except Exception as error:
            return f"{requirement.name} {version} does not import ({error})"
    return None


def kernel_cache() -> jit.CacheState | None:
    """Return the state of the kernel cache; None without Numba, whose version is part of the key."""
    try:
        return jit.cache_state()
    except metadata.PackageNotFoundError:
        return None


def usable_memory() -> int | None:
    """Return the memory in bytes, or the container's limit if smaller; None if unknown."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        return min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return memory


def show(report: DoctorReport, *, as_json: bool) -> None:
    """Print the report: JSON, a table on a terminal, plain lines in a pipe."""
    if as_json:
        typer.echo(report.to_json())
    elif sys.stdout.isatty():
        _print_tables(report)
    else:
        for title, rows in _sections(report):
            width = max(len(label) for label, _ in rows)
            typer.echo(title)
            for label, text in rows:
                typer.echo(f"  {label:<{width}}  {text}".rstrip())


def _print_tables(report: DoctorReport) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    for title, rows in _sections(report):
        table = Table(title=title, title_justify="left", title_style="bold", show_header=False, expand=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for label, text in rows:
            style = {"ready": "green", "missing": "red"}.get(text.partition(":")[0], "")
            table.add_row(label, f"[{style}]{escape(text)}[/]" if style else escape(text))
        console.print(table)


def _sections(report: DoctorReport) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the report as titled rows of label and text."""
    yield f"Contrada {report.contrada}", list(_machine_rows(report))
    if report.packages:
        yield "Packages", [(name, version or "-") for name, version in report.packages.items()]
    rows = []
    for feature in report.features:
        rows.append((feature.name, "ready" if feature.is_ready else "missing: " + "; ".join(feature.missing)))
        rows += [("", f"install: {command}") for command in feature.install]
    yield "Features", rows


def _machine_rows(report: DoctorReport) -> Iterator[tuple[str, str]]:
    yield "Python", f"{report.python} ({report.executable})"
    yield "System", report.system
    yield "Cores", str(report.cores)
    yield "Memory", byte_size(report.memory) if report.memory is not None else "unknown"
    yield "Java", report.java.complaint or f"{report.java.version} ({report.java.path})"
    if report.cache is None:
        yield "Kernels", "no cache: Numba is not installed"
    else:
        held = f"{report.cache.kernels} compiled, {byte_size(report.cache.nbytes)}"
        access = "writable" if report.cache.writable else "not writable"
        carried = f"{report.cache.carried} carried by the package, " if report.cache.carried else ""
        yield "Kernels", f"{carried}{held}, in {report.cache.directory} ({access})"
