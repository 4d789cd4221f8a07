"""Small files that become large: compressed Arrow, and Parquet whose footer lies, are refused before they are read."""

import io
import struct
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrada.errors import FormatError, LimitError
from contrada.formats.bounded import open_parquet
from contrada.formats.parquet.ipc_sizes import Table, ipc_file_bytes, ipc_stream_bytes
from contrada.formats.parquet.pages import column_pages, row_groups
from contrada.formats.tables.row_files import read_batches
from generators.columnar import arrow_bytes, lying, parquet_bytes
from verification.damage import run_cases

NEW = pa.ipc.new_stream, pa.ipc.new_file
ZEROS = pa.py_buffer(bytes(100_000_000))
ENDS = pa.array([0, 100_000_000]).buffers()[1]
LONG = pa.table({"a": pa.Array.from_buffers(pa.large_binary(), 1, [None, ENDS, ZEROS])})
SMALL = pa.table(
    {
        "text": ["some", "text", None] * 1000,
        "number": np.arange(3000.0),
        "kind": pa.array(["a", "b", "c"] * 1000).dictionary_encode(),
        "fixed": pa.array([b"abcd"] * 3000, pa.binary(4)),
        "list": [["x", "y"], [], None] * 1000,
    }
)


@pytest.fixture
def pool():
    """A pool of memory that counts what is allocated once it is set."""
    before = pa.default_memory_pool()
    yield pa.proxy_memory_pool(before)
    pa.set_memory_pool(before)


def rows(data, format):
    return pa.concat_tables(read_batches(io.BytesIO(data), format))


@pytest.mark.parametrize(("new", "count"), [(pa.ipc.new_stream, ipc_stream_bytes), (pa.ipc.new_file, ipc_file_bytes)])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_what_buffers_become_is_known_before(new, count, compression):
    plain, packed = (count(io.BytesIO(arrow_bytes(SMALL, each, new))) for each in (None, compression))
    assert plain == pytest.approx(packed, rel=0.01)  # padding differs


@pytest.mark.parametrize("new", NEW)
def test_arrow_is_refused_before_it_is_decompressed(new, pool):
    data = arrow_bytes(LONG, "zstd", new)
    pa.set_memory_pool(pool)
    with pytest.raises(LimitError, match="CONTRADA_MAX_EXPANSION"):
        rows(data, "arrow")
    assert pool.max_memory() < 50_000_000


def test_a_footer_that_lists_a_message_again_and_again_is_refused():
    data = arrow_bytes(pa.table({"a": [1, 2]}), None, pa.ipc.new_file)
    length = int.from_bytes(data[-10:-6], "little")
    footer = data[-10 - length : -10]
    (block,) = Table.root(footer).structs(3, "<qi4xq")
    longer = footer.replace(struct.pack("<qi4xq", *block), struct.pack("<qi4xq", block[0], len(data) + 1, block[2]))
    assert longer != footer
    with pytest.raises(FormatError, match="bytes of metadata in a file of"):
        ipc_file_bytes(io.BytesIO(data.replace(footer, longer)))


@pytest.mark.parametrize("cut", [1, 20, 200, 2000])
def test_damaged_arrow_files_are_refused(cut):
    data = arrow_bytes(SMALL, "zstd", pa.ipc.new_file)
    with pytest.raises(FormatError):
        rows(data[:-cut], "arrow")


ARROW = [arrow_bytes(SMALL, compression, new) for compression in (None, "lz4", "zstd") for new in NEW]
PARQUET = [
    parquet_bytes(SMALL),
    parquet_bytes(SMALL, compression="zstd", data_page_version="2.0"),
    parquet_bytes(SMALL, use_dictionary=False, data_page_size=100),
    parquet_bytes(
        SMALL, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY", "number": "BYTE_STREAM_SPLIT"}
    ),
    parquet_bytes(SMALL, row_group_size=100, write_page_checksum=True),
]


@pytest.mark.parametrize(("format", "data"), [*product(["arrow"], ARROW), *product(["parquet"], PARQUET)])
def test_files_are_read_whole(format, data):
    assert rows(data, format).to_pylist() == SMALL.to_pylist()


def test_pages_say_what_the_footer_says():
    data = parquet_bytes(SMALL, data_page_size=1000, row_group_size=1000, compression="zstd", use_dictionary=False)
    about, stream = pq.ParquetFile(io.BytesIO(data)).metadata, io.BytesIO(data)
    groups = list(row_groups(stream, len(data)))
    assert [group.rows for group in groups] == [1000, 1000, 1000]
    for number, group in enumerate(groups):
        for place, chunk in enumerate(group.chunks):
            column = about.row_group(number).column(place)
            found = column_pages(stream, chunk, lambda count: None)
            assert chunk.values == column.num_values
            assert abs(found.bytes - column.total_uncompressed_size) <= 100 * 20  # headers, of at most 20 pages
    assert [group.rows for group in row_groups(stream, len(data), (999, 1001))] == [1000, 1000]


def test_a_footer_that_lies_is_not_believed(pool):
    data = lying(parquet_bytes(LONG, compression="zstd", use_dictionary=False), 10)
    assert pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).total_byte_size == 10
    pa.set_memory_pool(pool)
    with pytest.raises(LimitError, match=r"the Parquet file has .*CONTRADA_MAX_EXPANSION"):
        rows(data, "parquet")
    assert pool.max_memory() < 50_000_000


def test_a_footer_that_hides_a_dictionary_is_not_believed():
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, np.int32)), ["x" * 100_000])
    data = lying(parquet_bytes(pa.table({"a": long.cast(pa.string())}), compression="zstd"), 10)
    opened = open_parquet(io.BytesIO(data), 8192, len(data))
    assert pa.types.is_dictionary(next(opened.batches()).schema.field("a").type)


def test_values_that_share_prefixes_are_read_few_at_a_time():
    table = pa.table({"a": ["x" * 100_000] * 300})
    data = parquet_bytes(table, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY", data_page_size=1 << 28)
    opened = open_parquet(io.BytesIO(data), 8192, len(data))
    assert opened.rows < 1000
    assert sum(batch.num_rows for batch in opened.batches()) == 300


@pytest.mark.parametrize(
    ("values", "is_dictionary"),
    [
        (
            [b"x" * (k % 50) for k in range(100_000)] + [b"%07d" % k for k in range(200_000)],
            False,
        ),  # then plain
        ([b"%05d" % k * 8 for k in range(5_000)] * 3, False),
        ([b"%05d" % k * 8 for k in range(5_000)] * 3 + [b"y" * 100_000], True),  # one is long, in the last page
        ([b"z" * 900_000] + [b"y"] * 40_000, True),
    ],
)
@pytest.mark.parametrize("per_group", [1 << 20, 9_000])
def test_only_long_values_are_read_as_dictionaries(values, is_dictionary, per_group):
    table, file = pa.table({"a": values}), io.BytesIO()
    pq.write_table(table, file, row_group_size=per_group)
    opened = open_parquet(file, 8192, len(file.getvalue()))
    assert pa.types.is_dictionary(opened.file.schema_arrow.field("a").type) == is_dictionary
    assert rows(file.getvalue(), "parquet").column("a").to_pylist() == values


def test_long_values_of_one_length_are_read_few_at_a_time():
    data = parquet_bytes(pa.table({"a": pa.array([bytes(1_000_000)] * 50, pa.binary(1_000_000))}))
    assert open_parquet(io.BytesIO(data), 8192, len(data)).rows < 100


def test_a_footer_with_more_bytes_than_the_file_is_refused():
    """Columns that share their pages are the way to that: walking each of them could take hours."""
    data = lying(
        parquet_bytes(pa.table({"a": ["x" * 5_000_000]}), compression="none", use_dictionary=False), 100_000_000
    )
    with pytest.raises(FormatError, match="the Parquet footer is damaged: columns of"):
        open_parquet(io.BytesIO(data), 8192, len(data))


@pytest.mark.parametrize("case", [2303, pytest.param(4753, marks=pytest.mark.slow)])
def test_metadata_that_end_the_process_in_pyarrow_are_not_asked_for(case):
    assert list(run_cases("arrow", case, 1)) == []
