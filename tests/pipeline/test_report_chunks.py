"""Chunks of a report: bounded, complete, in the page or beside it, and never over the files of others."""

from contextlib import closing

import pytest

import contrada as ct
from contrada.report.chunks import ChunkFolder


def write(folder, lines, **limits):
    with closing(folder.writer("items", **limits)) as writer:
        writer.add(lines)


def write_half(place):
    with ChunkFolder(place) as folder:
        write(folder, ["2"], max_lines=1)
        raise ValueError("half")


def test_chunks_are_bounded_by_lines_and_bytes(tmp_path):
    with ChunkFolder(tmp_path / "data") as folder:
        write(folder, [f'"{n}"' for n in range(10)], max_lines=4, max_bytes=1000)
        assert folder.starts == {"items": [0, 4, 8, 10]}
        folder.keep()
    assert (tmp_path / "data" / "items-00002.js").read_text() == 'contradaChunk("items",2,["8",\n"9"])\n'
    with ChunkFolder(tmp_path / "data") as folder:
        write(folder, ["1" * 40, "2" * 40, "3" * 90, "4"], max_lines=100, max_bytes=85)
        assert folder.starts == {"items": [0, 2, 3, 4]}  # a line that is too long has a chunk of its own
        folder.keep()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_small_data_is_embedded_and_replaces_what_lay_beside(tmp_path):
    for most in (0, 1000):
        with ChunkFolder(tmp_path / "data") as folder:
            write(folder, ["1", "2"], max_lines=1)
            text = folder.embedded(most)
            if text is None:
                folder.keep()
            else:
                folder.remove()
        assert (tmp_path / "data").exists() == (text is None) == (most == 0)
    assert text == 'contradaChunk("items",0,[1])\ncontradaChunk("items",1,[2])\n'
    assert list(tmp_path.iterdir()) == []


def test_nothing_gives_no_chunk(tmp_path):
    with ChunkFolder(tmp_path / "data") as folder:
        write(folder, [], max_lines=3)
        assert (folder.starts, folder.embedded()) == ({"items": [0]}, "")


def test_files_of_others_stay_and_a_failure_leaves_the_earlier_chunks(tmp_path):
    with ChunkFolder(tmp_path / "data") as folder:
        write(folder, ["1"], max_lines=1)
        folder.keep()
    with pytest.raises(ValueError, match="half"):
        write_half(tmp_path / "data")
    assert "[1]" in (tmp_path / "data" / "items-00000.js").read_text()
    (tmp_path / "data" / "mine.txt").write_text("mine")
    with ChunkFolder(tmp_path / "data") as folder:
        write(folder, ["3"], max_lines=1)
        with pytest.raises(ct.ContradaError, match="data has other files"):
            folder.keep()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["mine.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
