"""Read the bodies of `POST /messages` as columns for the broker."""

from contrada.service.intake.bodies import plain
from contrada.service.intake.parts import Part
from contrada.service.intake.posts import MediaTypeError, Post, post_of
from contrada.service.intake.reader import BodyReader, Refusal, Taken

__all__ = ["BodyReader", "MediaTypeError", "Part", "Post", "Refusal", "Taken", "plain", "post_of"]
