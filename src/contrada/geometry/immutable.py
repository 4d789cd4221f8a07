"""Immutable: base of values that cannot be changed once they are made."""


class Immutable:
    """Value whose attributes cannot be set; its class sets them with `object.__setattr__` or in `__dict__`."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")
