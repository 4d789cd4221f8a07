"""Virtual environments for tests of what is installed."""

import os
import subprocess
import sys
from pathlib import Path


class Environment:
    """A virtual environment, with programs that run outside the source tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self.variables = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(
        self, program: str, *arguments: object, code: int = 0, **variables: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, with variables set for this run; it must end with `code`."""
        command: list[str | Path] = [self.folder / "venv" / "bin" / program, *map(str, arguments)]
        settings = {**self.variables, **{name: str(value) for name, value in variables.items()}}
        done = subprocess.run(command, cwd=self.folder, env=settings, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done
