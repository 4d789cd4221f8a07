"""Which session commands and functions of the pipeline run on."""

from contrada.pipeline.session import session


def test_a_frame_made_in_a_batch_of_a_stream_changes_no_session(spark):
    """Batches have a session of their own, and a frame that is made in one makes it the active one."""
    other = spark.newSession()
    try:
        assert other.createDataFrame([(1,)], "size int").count() == 1
        assert other.getActiveSession() is other
        assert session() is spark
    finally:
        spark.createDataFrame([(1,)], "size int")
