"""Compiled kernels: the cache is keyed by sources, shared, private, and never trusted blindly."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import contrada
from contrada import jit, kernels

SOURCE = Path(contrada.__file__).parent
# Small enough to compile in a second or two.
USE_A_KERNEL = (
    "import numpy as np; from contrada.geometry import relate_boxes; "
    "print(relate_boxes(np.array([[0., 0, 4, 4]]), np.array([[1., 1, 2, 2]])).tolist())"
)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("CONTRADA_", "NUMBA_"))}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**settings, "PYTHONPATH": str(SOURCE.parent), **environment},
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip


def compiled(directory: Path) -> list[Path]:
    return sorted(directory.glob("kernels/*/*.nbc"))


def test_cold_compile_says_one_line_and_the_next_process_says_nothing(tmp_path):
    cold = run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    warm = run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    assert cold.stdout == warm.stdout == "[5]\n"
    assert cold.stderr.count("\n") == 1
    assert cold.stderr.startswith("contrada: compiling kernels")
    assert warm.stderr == ""
    assert len(compiled(tmp_path)) == 1


def test_concurrent_first_users_compile_once(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "CONTRADA_CACHE_DIR": str(tmp_path)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", USE_A_KERNEL],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    answers = [process.communicate(timeout=300) for process in crowd]
    assert [out for out, _ in answers] == [b"[5]\n"] * 4
    assert sum(b"compiling" in error for _, error in answers) == 1


def test_a_damaged_cache_file_costs_a_compilation_not_a_crash(tmp_path):
    run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    (data,) = compiled(tmp_path)
    data.write_bytes(data.read_bytes()[:100])
    again = run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    assert again.stdout == "[5]\n"
    assert "compiling" in again.stderr
    assert run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path)).stderr == ""


@pytest.mark.parametrize(("suffix", "damage"), [("nbi", "flip"), ("nbi", "empty"), ("nbc", "flip")])
def test_damaged_files_of_the_cache_cost_one_compilation(tmp_path, suffix, damage):
    run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    (file,) = tmp_path.rglob(f"*.{suffix}")
    whole = file.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
    file.write_bytes(flipped if damage == "flip" else b"")
    again = run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    assert again.stdout == "[5]\n"
    assert "compiling" in again.stderr
    assert run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path)).stderr == ""


def test_a_change_in_a_helper_of_another_file_is_noticed(tmp_path):
    package = tmp_path / "src"
    shutil.copytree(SOURCE, package / "contrada", ignore=shutil.ignore_patterns("__pycache__"))
    settings = {"CONTRADA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(package)}
    assert "compiling" in run(USE_A_KERNEL, **settings).stderr
    assert run(USE_A_KERNEL, **settings).stderr == ""
    with (package / "contrada" / "kernels" / "orientation.py").open("a") as helper:
        helper.write("\n\nCHANGED = True\n")
    assert "compiling" in run(USE_A_KERNEL, **settings).stderr


def test_without_a_writable_home_a_private_temporary_directory_serves(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    made = run(USE_A_KERNEL, HOME=str(blocked), XDG_CACHE_HOME=str(blocked), TMPDIR=str(temporary))
    assert made.stdout == "[5]\n"
    (root,) = temporary.glob("contrada-*")
    assert root.stat().st_mode & 0o077 == 0
    assert len(compiled(root)) == 1
    assert run(USE_A_KERNEL, HOME=str(blocked), XDG_CACHE_HOME=str(blocked), TMPDIR=str(temporary)).stderr == ""


def test_a_temporary_cache_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path))
    mine = jit._temporary_cache()
    assert mine.parent == tmp_path
    mine.chmod(0o777)
    assert jit._temporary_cache() != mine


def test_the_host_application_keeps_its_numba_cache(tmp_path):
    code = USE_A_KERNEL + "; import numba; print(numba.config.CACHE_DIR)"
    ran = run(code, CONTRADA_CACHE_DIR=str(tmp_path / "ours"), NUMBA_CACHE_DIR=str(tmp_path / "theirs"))
    assert ran.stdout.splitlines()[1] == str(tmp_path / "theirs")
    assert not list((tmp_path / "theirs").glob("**/*.nbc"))
    assert len(compiled(tmp_path / "ours")) == 1


def test_old_caches_are_removed_and_recent_ones_kept(tmp_path):
    old, recent = tmp_path / "kernels" / "old", tmp_path / "kernels" / "recent"
    for directory in (old, recent):
        directory.mkdir(parents=True)
    os.utime(old, (0, 0))
    run(USE_A_KERNEL, CONTRADA_CACHE_DIR=str(tmp_path))
    assert not old.exists()
    assert recent.exists()


def test_import_and_region_free_use_need_no_numba():
    code = "import sys, contrada as ct; ct.compose(ct.Relation.MEETS, ct.Relation.INSIDE)"
    assert run(code + "; print('numba' in sys.modules)").stdout == "False\n"


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
