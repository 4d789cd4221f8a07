"""Register Contrada's functions and data source with a Spark session, classic or Connect."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

from contrada.pipeline.sql import columns
from contrada.pipeline.sql.source import ContradaSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> Mapping[str, Any]:
    """Register the SQL functions, whose names begin with `ct_`, and the data source.

    These are `ct_relate`, `ct_relates`, `ct_within_distance`, `ct_within_metres`, `ct_match`, `ct_valid` and
    `ct_with_crs`. Returns the functions by name, for DataFrames: `functions["ct_relate"]("a", "b")`. They work on whole
    Arrow columns.
    """
    make: Any = arrow_udf
    made = {name: make(function, kind) for name, (function, kind) in FUNCTIONS.items()}
    for name, function in made.items():
        spark.udf.register(name, function)
    spark.dataSource.register(ContradaSource)
    return MappingProxyType(made)


# Spark reads the type hints of a function to tell how it takes columns.
def _relate(a: pa.Array, b: pa.Array) -> pa.Array:
    return columns.relations(a, b)


def _relates(a: pa.Array, b: pa.Array, words: pa.Array) -> pa.Array:
    return columns.are_related(a, b, words)


def _within_distance(a: pa.Array, b: pa.Array, distance: pa.Array) -> pa.Array:
    return columns.are_near(a, b, distance, "ct_within_distance", None)


def _within_metres(a: pa.Array, b: pa.Array, metres: pa.Array) -> pa.Array:
    return columns.are_near(a, b, metres, "ct_within_metres", "m")


def _match(artifact: pa.Array, message: pa.Array) -> pa.Array:
    return columns.match_messages(artifact, message)


def _valid(geometry: pa.Array) -> pa.Array:
    return columns.are_valid(geometry)


def _with_crs(geometry: pa.Array, crs: pa.Array) -> pa.Array:
    return columns.with_crs(geometry, crs)


FUNCTIONS = {
    "ct_relate": (_relate, "string"),
    "ct_relates": (_relates, "boolean"),
    "ct_within_distance": (_within_distance, "boolean"),
    "ct_within_metres": (_within_metres, "boolean"),
    "ct_match": (_match, "array<string>"),
    "ct_valid": (_valid, "boolean"),
    "ct_with_crs": (_with_crs, "binary"),
}
