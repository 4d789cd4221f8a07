"""Artifacts: published whole, fetched once per host, mended when damaged, removed when long unused."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem, SubTreeFileSystem
from sample_tables import matches, some_table

from console import python
from contrada import pipeline
from contrada.errors import TableError
from contrada.pipeline import artifact_cache as tables
from contrada.pipeline import artifacts


def rewrite(path, data):
    path.unlink()  # a copy may be a link to its source
    path.write_bytes(data)


def damage(path):
    """Change a byte of a file in place, as a bad disk would, under a later time."""
    *kept, last = path.read_bytes()
    rewrite(path, bytes([*kept, last ^ 0xFF]))


def cut(path):
    """Leave a part of a file."""
    rewrite(path, path.read_bytes()[:3])


def test_an_artifact_says_what_it_holds(artifact):
    assert artifact.attributes == ("area", "severity")
    assert (artifact.subscriptions, artifact.filters, artifact.key_type) == (1, 1, "string")
    assert pipeline.Artifact.read(artifact.path) == artifact
    assert artifact.bytes == sum(os.path.getsize(f"{artifact.path}/{name}") for name in artifact.files)


def test_a_place_may_be_a_uri(tmp_path, root):
    artifact = pipeline.publish(some_table(), tmp_path.as_uri())
    assert artifact.path == f"{tmp_path.as_uri()}/{artifact.digest}"
    assert matches(tables.open_copy(artifact, root)) == {"ops-team"}
    for odd in ("nowhere://x", "file://host/x"):
        with pytest.raises(TableError, match="not a directory or URI for artifacts"):
            pipeline.publish(some_table(), odd)


def test_what_is_no_artifact_is_an_error(tmp_path):
    with pytest.raises(TableError, match="is not an artifact"):
        pipeline.Artifact.read(tmp_path)


def passed_on(name):
    return lambda self, path, *further: getattr(self.inner, name)(path)


class Elsewhere(FileSystemHandler):
    """A store on another machine, kept in a directory; nothing but what artifacts need."""

    def __init__(self, kind, directory):
        self.kind, self.inner, self.order = kind, SubTreeFileSystem(str(directory), LocalFileSystem()), []

    def get_type_name(self):
        return self.kind

    def open_output_stream(self, path, metadata):
        self.order.append(path.split("/")[-1])
        return self.inner.open_output_stream(path)

    def move(self, source, target):
        if self.kind == "s3":
            raise OSError("no rename here")
        self.inner.move(source, target)

    def normalize_path(self, path):
        return path

    def get_file_info_selector(self, selector):
        raise NotImplementedError

    get_file_info, create_dir, open_input_stream, open_input_file, delete_dir = map(
        passed_on, ("get_file_info", "create_dir", "open_input_stream", "open_input_file", "delete_dir")
    )
    copy_file = delete_dir_contents = delete_file = delete_root_dir_contents = open_append_stream = (
        get_file_info_selector
    )


class Store(PyFileSystem):
    """A store whose type is that of its handler, without the prefix of stores in Python."""

    type_name = property(lambda self: self.handler.kind)


@pytest.mark.parametrize("kind", ["hdfs", "s3"])
def test_stores_elsewhere_are_filled_with_and_without_a_rename(kind, tmp_path, root, monkeypatch):
    (tmp_path / "store").mkdir()
    handler = Elsewhere(kind, tmp_path / "store")
    store = Store(handler)
    for module in (artifacts, tables):
        monkeypatch.setattr(module, "store_of", lambda where: (store, str(where).removeprefix("x://")))
    artifact = pipeline.publish(some_table(), "x://place")
    assert handler.order[-1] == "artifact.json"
    assert [path.name for path in (tmp_path / "store" / "place").iterdir()] == [artifact.digest]
    written = len(handler.order)
    assert pipeline.publish(some_table(), "x://place") == artifact
    assert len(handler.order) == written
    assert matches(tables.open_copy(artifact, root)) == {"ops-team"}


def test_a_local_source_is_linked_not_copied(artifact, root):
    tables.open_copy(artifact, root)
    for name in artifact.files:
        assert os.path.samefile(root / artifact.digest / name, f"{artifact.path}/{name}")


def test_threads_that_open_at_once_fetch_once(artifact, root, monkeypatch):
    fetched = []
    find = tables.store_of

    def slow(source):
        fetched.append(source)
        time.sleep(0.2)
        return find(source)

    monkeypatch.setattr(tables, "store_of", slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: tables.open_copy(artifact, root), range(4)))
    assert [matches(opened) for opened in found] == [{"ops-team"}] * 4
    assert fetched == [artifact.path]


PROCESS = """
import sys, time
from pathlib import Path
from contrada.pipeline import artifact_cache as tables
from contrada.pipeline.artifacts import Artifact
find = tables.store_of
def slow(source):
    print("fetched", flush=True)
    time.sleep(0.3)
    return find(source)
tables.store_of = slow
print(len(tables.open_copy(Artifact.read(sys.argv[1]), Path(sys.argv[2])).table))
"""


def test_processes_that_open_at_once_fetch_once(artifact, root):
    with ThreadPoolExecutor(2) as pool:
        said = [run.stdout.split() for run in pool.map(lambda _: python("-c", PROCESS, artifact.path, root), range(2))]
    assert sorted(said) == [["1"], ["fetched", "1"]]


@pytest.mark.parametrize("name", ["header.json", "keys-text.npy", "check0-xy.npy"])
def test_a_damaged_copy_is_fetched_again(artifact, root, name):
    tables.open_copy(artifact, root)
    path = root / artifact.digest / name
    for change in (damage, Path.unlink, cut):
        change(path)
        assert matches(tables.open_copy(artifact, root)) == {"ops-team"}


def test_a_copy_that_is_only_touched_is_kept(artifact, root, monkeypatch):
    tables.open_copy(artifact, root)
    os.utime(root / artifact.digest / "header.json", (1, 1))
    monkeypatch.setattr(tables, "store_of", lambda source: pytest.fail("fetched again"))
    assert matches(tables.open_copy(artifact, root)) == {"ops-team"}


@pytest.mark.parametrize("name", ["header.json", "keys-text.npy"])
def test_a_damaged_source_is_an_error_that_names_it(artifact, root, name):
    path = Path(artifact.path) / name
    damage(path)
    with pytest.raises(TableError, match=f"{artifact.digest} is damaged.*{name}"):
        tables.open_copy(artifact, root)
    assert not (root / artifact.digest).exists()
    path.unlink()
    with pytest.raises(TableError, match="cannot be fetched"):
        tables.open_copy(artifact, root)


def test_copies_unused_for_long_are_removed_but_none_in_use(tmp_path, root):
    now = time.time()
    made = [pipeline.publish(some_table(k), tmp_path / "artifacts") for k in range(4)]
    opened = [tables.open_copy(artifact, root) for artifact in made]
    for each in opened[1:]:
        each.use.close()
    week = tables.MAX_UNUSED_SECONDS
    for artifact, age in zip(made, (week + 60, week + 60, week - 60, 0), strict=True):
        os.utime(root / f"{artifact.digest}.use", (now - age, now - age))
    tables.remove_unused(root, now)
    assert [(root / artifact.digest).exists() for artifact in made] == [True, False, True, True]
    assert matches(opened[1]) == {"ops-team"}  # what is mapped stays, even if its files are gone
    assert matches(tables.open_copy(made[1], root)) == {"ops-team"}


def test_copies_that_take_too_much_room_are_removed_the_longest_unused_first(tmp_path, root):
    made = [pipeline.publish(some_table(k), tmp_path / "artifacts") for k in range(3)]
    for age, artifact in enumerate(made):
        tables.open_copy(artifact, root).use.close()
        os.utime(root / f"{artifact.digest}.use", (time.time() + age, time.time() + age))
    size = sum(path.stat().st_size for path in (root / made[0].digest).glob("*.npy"))
    tables.remove_unused(root, most_bytes=2 * size + 50)
    assert [(root / artifact.digest).exists() for artifact in made] == [False, True, True]


def test_a_process_keeps_a_few_tables_open(tmp_path, own_cache):
    made = [pipeline.publish(some_table(k), tmp_path / "artifacts") for k in range(tables.MAX_OPEN_TABLES + 1)]
    first = tables.opened(made[0])
    assert tables.opened(made[0]) is first
    for artifact in made[1:]:
        tables.opened(artifact)
    assert first.use.closed
    assert tables.open_digests() == [artifact.digest for artifact in made[1:]]
    assert tables.opened(made[0]) is not first


def test_without_pyspark_there_is_one_clear_error():
    code = (
        "import importlib.util, contrada, contrada.pipeline as p\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'pyspark' else find(name)\n"
        "try: p.match\n"
        "except contrada.ContradaError as error: print(error)\n"
    )
    told = python("-c", code).stdout
    assert told.startswith("the pipeline needs PySpark; to install it: ")
    assert told.count("\n") == 1
