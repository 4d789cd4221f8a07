"""Compiled kernels: the cache is keyed by sources, shared, private, and never trusted blindly."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import contrada
from console import python
from contrada import jit, kernels
from effort import slow

SOURCE = Path(contrada.__file__).parent
# Small enough to compile in a second or two.
USE_A_KERNEL = (
    "import numpy as np; from contrada.geometry import relate_boxes; "
    "print(relate_boxes(np.array([[0., 0, 4, 4]]), np.array([[1., 1, 2, 2]])).tolist())"
)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("CONTRADA_", "NUMBA_"))}
    return python("-W", "error", "-c", code, env={**settings, "PYTHONPATH": str(SOURCE.parent), **environment})


def compiled(directory: Path) -> list[Path]:
    return sorted(directory.glob("kernels/*/*.nbc"))


def damage_of(data, how):
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
    return {"cut": data[:100], "flip": flipped, "empty": b""}[how]


@pytest.mark.parametrize(
    "damages",
    [[("nbc", "cut")], slow([("nbi", "flip"), ("nbi", "empty"), ("nbc", "flip")])],
    ids=["cut", "flipped or empty"],
)
def test_kernels_are_compiled_once_and_again_when_the_cache_is_damaged(tmp_path, damages):
    """One line is written while kernels are compiled, and nothing by the next process."""
    use = partial(run, USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    cold = use()
    assert cold.stdout == "[5]\n"
    assert cold.stderr.count("\n") == 1
    assert cold.stderr.startswith("contrada: compiling kernels")
    assert len(compiled(tmp_path)) == 1
    for suffix, how in damages:
        warm = use()
        assert (warm.stdout, warm.stderr) == ("[5]\n", "")
        (file,) = tmp_path.rglob(f"*.{suffix}")
        file.write_bytes(damage_of(file.read_bytes(), how))
        again = use()
        assert again.stdout == "[5]\n"
        assert "compiling" in again.stderr
    assert use().stderr == ""


@pytest.mark.slow
def test_concurrent_first_users_compile_once(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        crowd = list(pool.map(lambda _: run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path)), range(4)))
    assert [one.stdout for one in crowd] == ["[5]\n"] * 4
    assert sum("compiling" in one.stderr for one in crowd) == 1


@pytest.mark.slow
def test_a_change_in_another_file_is_noticed(tmp_path):
    package = tmp_path / "src"
    shutil.copytree(SOURCE, package / "contrada", ignore=shutil.ignore_patterns("__pycache__"))
    settings = {"CONTRADA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(package)}
    assert "compiling" in run(USE_A_KERNEL, **settings).stderr
    assert run(USE_A_KERNEL, **settings).stderr == ""
    for changed in ("kernels/relate/orientation.py", "codes.py"):
        with (package / "contrada" / changed).open("a") as file:
            file.write("\n\nCHANGED = True\n")
        assert "compiling" in run(USE_A_KERNEL, **settings).stderr, changed


@pytest.mark.slow
def test_without_a_writable_home_a_private_temporary_directory_serves(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    homes = {"HOME": str(blocked), "XDG_CACHE_HOME": str(blocked), "TMPDIR": str(temporary)}
    assert run(USE_A_KERNEL, **homes).stdout == "[5]\n"
    (root,) = temporary.glob("contrada-*")
    assert root.stat().st_mode & 0o077 == 0
    assert len(compiled(root)) == 1
    assert run(USE_A_KERNEL, **homes).stderr == ""


def test_a_temporary_cache_that_others_can_write_is_not_trusted(tmp_path):
    show = "from contrada import jit; print(jit.cache_directory())"
    use = partial(run, show, CONTRADA_CACHE_DIR=os.devnull, TMPDIR=str(tmp_path))
    first = use().stdout
    (mine,) = tmp_path.iterdir()
    assert first.startswith(f"{mine}{os.sep}")
    assert use().stdout == first
    mine.chmod(0o777)
    assert not use().stdout.startswith(f"{mine}{os.sep}")


def test_the_host_application_keeps_its_cache_and_old_ones_of_ours_are_removed(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    old, recent = ours / "kernels" / "old", ours / "kernels" / "recent"
    for directory in (old, recent):
        directory.mkdir(parents=True)
    os.utime(old, (0, 0))
    code = USE_A_KERNEL + "; import numba; print(numba.config.CACHE_DIR)"
    ran = run(code, CONTRADA_CACHE_DIR=str(ours), NUMBA_CACHE_DIR=str(theirs))
    assert ran.stdout.splitlines()[1] == str(theirs)
    assert not list(theirs.glob("**/*.nbc"))
    assert len(compiled(ours)) == 1
    assert not old.exists()
    assert recent.exists()


def test_mapped_arrow_and_numpy_arrays_share_one_compilation(tmp_path):
    boxes = np.array([[0.0, 0, 4, 4]])
    np.save(tmp_path / "boxes.npy", boxes)
    mapped = np.load(tmp_path / "boxes.npy", mmap_mode="r")
    out = np.empty(1, np.uint8)
    for first in (boxes, np.asarray(mapped), np.frombuffer(boxes.tobytes()).reshape(1, 4)):
        kernels.box_relations(first, boxes, out)
        assert out[0] == 3


def test_unknown_kernels_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        kernels.frobnicate  # noqa: B018


def test_cache_state_counts_what_is_there():
    kernels.box_relations  # noqa: B018
    state = jit.cache_state()
    assert state.key == jit.source_key()
    assert state.writable
    assert state.kernels >= 1
    assert state.nbytes > 0


CALL_A_HELPER = """
import numba, numpy as np
from contrada import kernels
from contrada.kernels.match.like import like_matches
kernels.compiled_kernel("scan_raw")  # one of those that call it
text = np.frombuffer(b"ab\\xff", np.uint8)
print(numba.njit(lambda text: like_matches(text, 0, 2, text, 0, 2))(text))
"""


@pytest.mark.slow
def test_other_compiled_code_may_call_a_helper_after_an_entry_was_compiled(tmp_path):
    """It was a call to nowhere: helpers get code only as part of entries."""
    assert run(CALL_A_HELPER, CONTRADA_CACHE_DIR=str(tmp_path)).stdout == "True\n"
