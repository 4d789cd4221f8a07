"""Find Java, or explain in one sentence how to install it.

Spark runs on Java. The Makefile runs this file before anything is installed and `contrada doctor` imports it, so it
uses the standard library alone.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MIN_JAVA_VERSION = 17


class Java(NamedTuple):
    """A Java program, or None; its versions are None if it does not start."""

    path: str | None
    major: int | None
    version: str | None

    @property
    def is_ready(self) -> bool:
        """Return True if Spark 4 runs on it."""
        return self.major is not None and self.major >= MIN_JAVA_VERSION

    @property
    def fault(self) -> str | None:
        """Return what is wrong; None if Java is ready."""
        if self.is_ready:
            return None
        named = "JAVA_HOME names " if os.environ.get("JAVA_HOME") else "the PATH has "
        if self.path is None:
            found = "no Java was found"
        elif self.version is None:
            found = f"{named}{self.path}, which does not start"
        else:
            found = f"{named}{self.path}, which is version {self.version}"
        return f"Contrada needs Java {MIN_JAVA_VERSION} or newer for Spark and {found}"

    @property
    def complaint(self) -> str | None:
        """Return one sentence with the command that installs Java; None if Java is ready."""
        return self.fault and f"{self.fault}; to install it: {install_command()}"


def find_java() -> Java:
    """Return the Java that Spark would start: that of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None:
        return Java(None, None, None)
    try:
        # macOS has a /usr/bin/java that only reports that there is no Java, and fails.
        answer = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return Java(path, None, None)
    return Java(path, *parse_version(answer.stderr + answer.stdout))


def parse_version(text: str) -> tuple[int | None, str | None]:
    """Return major and full version from the output of `java -version`; versions before 9 are written 1.x."""
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', text)
    return (int(found[2]), found[1]) if found else (None, None)


def install_command() -> str:
    """Return the command that installs a recent Java on this platform."""
    sudo = "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "
    if sys.platform == "darwin":
        return "brew install --cask temurin@21"
    families = _linux_families()
    if "ubuntu" in families:
        # Ubuntu's default Java was still 11 in 22.04.
        return f"{sudo}apt-get install -y openjdk-21-jre-headless"
    if "debian" in families:
        return f"{sudo}apt-get install -y default-jre-headless"
    if families & {"fedora", "rhel", "centos"}:
        return f"{sudo}dnf install -y java-21-openjdk-headless"
    return "see https://adoptium.net"


def _linux_families() -> set[str]:
    """Return the distribution and its ancestors, as /etc/os-release names them."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return set()
    return {release.get("ID", ""), *release.get("ID_LIKE", "").split()}


if __name__ == "__main__":
    sys.exit(find_java().complaint)
