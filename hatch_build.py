"""Let a wheel carry compiled kernels: the files in the directory that CONTRADA_CARRIED_KERNELS names (`make wheel`)."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CarriedKernels(BuildHookInterface):
    """Add the files of a kernel cache to the package, where contrada/jit.py reads them, and name the platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Leave a wheel of pure Python alone, which every other build makes."""
        directory = os.environ.get("CONTRADA_CARRIED_KERNELS")
        if not directory or version == "editable":
            return
        files = [file for file in Path(directory).iterdir() if file.suffix in (".nbi", ".nbc")]
        if not files:
            raise FileNotFoundError(f"no compiled kernels in {directory}; run `contrada doctor --warm`")
        build_data["force_include"].update({str(file): f"contrada/compiled/{file.name}" for file in files})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
