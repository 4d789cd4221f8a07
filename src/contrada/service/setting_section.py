"""Section: what all groups of settings of the server have in common."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from contrada.errors import ContradaError


class SettingsError(ContradaError, ValueError):
    """A setting is unknown or has a wrong value; the message names the file, variable or flag, and what is allowed."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A group of settings. Its representation hides secrets."""

    SECRETS: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name in self.SECRETS and getattr(self, name) is not None else repr(getattr(self, name))}"
            for name in self.__struct_fields__
        )
        return f"{type(self).__name__}({', '.join(shown)})"
