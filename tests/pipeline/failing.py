"""A task that fails in its first attempt, for tests of what Spark does then."""

from contrada.pipeline import answers


def failing_once(mark):
    """A `match_batches` that fails after its first batch, unless the file `mark` says that it has failed already."""

    def failing(parts, **options):
        for part in answers.match_batches(parts, **options):
            yield part
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                continue
            raise OSError("the first attempt fails after its first batch")

    return failing
