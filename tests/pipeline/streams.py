"""What tests do with streams from outside: make files, read what they wrote, take back the commit of a batch."""

import io

import pyarrow.parquet as pq

AVAILABLE = {"availableNow": True}


def rows_in(folder):
    """All rows that a stream wrote there, with the number of their batch."""
    return [
        {**row, "batch": int(path.parent.name.removeprefix("batch="))}
        for path in sorted(folder.glob("batch=*/*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


def written(folder, names):
    """The values that these columns have in all rows, sorted."""
    return sorted((tuple(row[name] for name in names) for row in rows_in(folder)), key=repr)


def parquet_of(table, **options):
    """The bytes of a Parquet file."""
    target = io.BytesIO()
    pq.write_table(table, target, **options)
    return target.getvalue()


def uncommit(checkpoint, batch):
    """Leave a checkpoint as if the driver had been killed before Spark committed the batch."""
    for log in (f"{batch}", f".{batch}.crc"):
        (checkpoint / "commits" / log).unlink(missing_ok=True)
