"""Hostile manifests and links: an error that names the field, and nothing outside of the cache is touched."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from sample_tables import matches

from contrada import pipeline
from contrada.errors import TableError
from contrada.pipeline import artifact_cache as tables
from contrada.pipeline import manifests
from contrada.pipeline.partitioned.splitting import split
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.version_log import FIELDS, Version


@pytest.fixture
def precious(tmp_path):
    """A directory outside of the cache that nothing may change."""
    place = tmp_path / "precious"
    (place / "inner").mkdir(parents=True)
    (place / "inner" / "work.txt").write_text("years of work")
    before = sorted((str(path), path.stat().st_mtime_ns) for path in place.rglob("*"))
    yield place
    assert sorted((str(path), path.stat().st_mtime_ns) for path in place.rglob("*")) == before
    assert (place / "inner" / "work.txt").read_text() == "years of work"


def check_refused(artifact, reason, **changes):
    """With these changes in its manifest an artifact is an error that gives the reason."""
    path = Path(artifact.path) / "artifact.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(TableError, match=reason):
        pipeline.Artifact.read(artifact.path)


DIGESTS = ["../../precious", "{precious}", "..", ".", "", "/", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "../" + "0" * 61,
           "0" * 63 + "/", "0" * 64 + "\n", 7, None, ["0" * 64], {}]  # fmt: skip
NAMES = ["../x", "/etc/passwd", "a/b", "..", ".", "", ".hidden", "a\\b", "a\0b", "x" * 300, 7, None, "ä"]


@pytest.mark.parametrize("value", DIGESTS)
def test_a_digest_is_64_hexadecimal_digits(artifact, root, precious, value):
    digest = value.replace("{precious}", str(precious)) if isinstance(value, str) else value
    check_refused(artifact, "digest", digest=digest)
    with pytest.raises(TableError, match="digest"):
        tables.open_copy(artifact._replace(digest=digest), root)
    assert tables.remove_copy(digest, root) is False
    assert not root.exists()


@pytest.mark.parametrize("value", NAMES)
def test_files_have_plain_names(artifact, root, precious, value):
    check_refused(artifact, "files: need a file name", files=[*artifact.files, value])
    with pytest.raises(TableError, match="need a file name"):
        tables.open_copy(artifact._replace(files=(*artifact.files, value)), root)


WRONG = {
    "filters": [-1, 1.5, "1", True, None, 1 << 63, 10**400],
    "subscriptions": [-1, [], {}],
    "bytes": ["", -5],
    "attributes": ["area", [1], None, {"a": 1}, [["a"]]],
    "crs": [[], {"area": 5}, "EPSG:4326", None],
    "key_type": ["varchar", 5, None, ["string"]],
    "subscriber_type": ["", {}],
    "files": ["header.json", [], None, ["keys-text.npy"], ["header.json", "header.json"]],
    "is_spatial_only": ["yes", 1, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_fields_of_an_artifact_have_types_and_ranges(artifact, name, value):
    check_refused(artifact, name if value != 10**400 else "is not an artifact", **{name: value})


BAD = [b"", b"[]", b"5", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, b'{"digest": "x"}', b"{}"]


def version_of(text):
    return Version(**manifests.fields(manifests.parsed(text), FIELDS))


@pytest.mark.parametrize("text", BAD)
def test_a_damaged_manifest_is_a_clear_error(artifact, tmp_path, text):
    (Path(artifact.path) / "artifact.json").write_bytes(text)
    with pytest.raises(TableError, match="is not an artifact"):
        pipeline.Artifact.read(artifact.path)
    (tmp_path / "partitions.json").write_bytes(text)
    with pytest.raises(TableError, match="is not a partitioned artifact"):
        pipeline.PartitionedArtifact.read(tmp_path)
    with pytest.raises(TableError):
        version_of(text)


def test_an_unknown_field_is_named(artifact):
    check_refused(artifact, "unknown field 'shell'", shell="rm")


def test_fields_of_partitions_have_types_and_ranges(tmp_path):
    filters = [f"S_INTERSECTS(area, POLYGON(({k} 0, {k + 3} 0, {k} 3, {k} 0)))" for k in range(20)]
    rows = pa.table({"key": range(20), "subscriber": [k // 3 for k in range(20)], "filter": filters})
    made, _ = split(rows, None, str(tmp_path), 3)
    page = tmp_path / made.digest / "partitions.json"
    good = json.loads(page.read_text())
    assert pipeline.PartitionedArtifact.read(tmp_path / made.digest) == made
    first = good["partitions"][0]
    inner = first["artifact"]
    hostile = [
        ("digest", {"digest": "../x"}),
        ("router: digest", {"router": {**good["router"], "digest": "/etc"}}),
        ("partitions: artifact: digest", {"partitions": [{**first, "artifact": {**inner, "digest": ".."}}]}),
        ("partitions: artifact: files", {"partitions": [{**first, "artifact": {**inner, "files": ["a/b"]}}]}),
        ("partitions: boxes", {"partitions": [{**first, "boxes": {"area": [[0, 0, 1]]}}]}),
        ("partitions: boxes", {"partitions": [{**first, "boxes": {"area": [[5, 0, 1, 1]]}}]}),
        ("partitions: boxes", {"partitions": [{**first, "boxes": {"area": [[0, 0, "1", 1]]}}]}),
        ("partitions: first_shared", {"partitions": [{**first, "first_shared": -1}]}),
        ("partitions", {"partitions": "all"}),
        ("has_subscribers", {"has_subscribers": 1}),
    ]  # fmt: skip
    for where, changes in hostile:
        page.write_text(json.dumps({**good, **changes}))
        with pytest.raises(TableError, match=where):
            pipeline.PartitionedArtifact.read(tmp_path / made.digest)


def test_fields_of_a_version_have_types_and_ranges(artifact):
    good = Version(3, artifact, (1, 2), 5, ("severity",), 2, {"a.ndjson": 7})
    assert version_of(good.text()) == good
    about = json.loads(good.text())
    hostile = [("segments", ["../../x"]), ("segments", [-1]), ("number", "3"), ("attributes", 5), ("changes", None),
               ("artifact", {**about["artifact"], "digest": "../.."})]  # fmt: skip
    for name, value in hostile:
        with pytest.raises(TableError, match=name):
            version_of(json.dumps({**about, name: value}).encode())


def test_links_in_the_cache_are_never_followed(artifact, root, precious):
    root.mkdir(parents=True)
    for suffix, target in (("", precious), (".use", precious / "inner" / "work.txt"), (".lock", precious / "new")):
        (root / f"{artifact.digest}{suffix}").symlink_to(target)
    opened = tables.open_copy(artifact, root)
    assert matches(opened) == {"ops-team"}
    assert not (root / artifact.digest).is_symlink()
    opened.use.close()


def test_nothing_that_a_link_names_is_removed(artifact, root, precious):
    root.mkdir(parents=True)
    (root / artifact.digest).symlink_to(precious)
    (root / f"{artifact.digest}.use").touch()
    assert tables.remove_copy(artifact.digest, root) is False
    tables.remove_unused(root, now=1e12)
    for name in ("..", "x", "."):
        (root / f"{name}.use").touch()
    tables.remove_unused(root, now=1e12)
    assert root.is_dir()


def test_a_cache_may_be_a_link_itself(artifact, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    opened = tables.open_copy(artifact, tmp_path / "cache" / "tables")
    assert (tmp_path / "elsewhere" / "tables" / artifact.digest).is_dir()
    opened.use.close()
    assert tables.remove_copy(artifact.digest, tmp_path / "cache" / "tables")


def test_files_that_are_links_are_copied_and_checked(artifact, root, precious):
    """An artifact whose files are links: what they name is read, and never written."""
    place = Path(artifact.path)
    (place / "header.json").rename(place / "real.json")
    (place / "header.json").symlink_to("real.json")
    (place / "verified.json").symlink_to(precious / "inner" / "work.txt")
    odd = artifact._replace(files=(*artifact.files, "verified.json"))
    opened = tables.open_copy(odd, root)
    assert not (root / artifact.digest / "header.json").is_symlink()
    assert matches(opened) == {"ops-team"}
    opened.use.close()


def test_a_place_removes_links_and_not_what_they_name(tmp_path, precious):
    place = Storage(tmp_path / "place")
    place.write("artifacts/a", b"1")
    for target in (precious, precious / "inner" / "work.txt"):
        os.symlink(target, tmp_path / "place" / "artifacts" / "link")
        place.remove("artifacts/link")
    assert place.names("artifacts") == ["a"]
