"""Attributes that a server wraps at the date line: the setting, and the mode that the state was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from contrada.errors import ArgumentError, ContradaError
from contrada.geometry.globe import globes_of
from contrada.service.setting_section import SettingsError
from contrada.service.store.message_store import MessageStore, StoreChange

WRAP = "wrap"  # kind of the record


def wrap_in(pairs: Sequence[str]) -> dict[str, str]:
    """Return the modes by attribute of the setting; raise SettingsError for a bad one.

    >>> wrap_in(["area=longitude"])
    {'area': 'longitude'}
    """
    parts = [pair.rpartition("=") for pair in pairs]
    wrap = {name.strip(): mode.strip() for name, _, mode in parts}
    try:
        globes_of(wrap)
    except ArgumentError as error:
        raise SettingsError(f"server.{error}") from error
    return wrap


def check_wrap(store: MessageStore, wrap: Mapping[str, str], has_subscriptions: bool) -> None:
    """Raise ContradaError if the subscriptions of a store were put with another setting."""
    data = store.record(WRAP, "")
    known = {} if data is None else msgspec.json.decode(data, type=dict[str, str])
    if has_subscriptions and known != dict(wrap):
        raise ContradaError(
            f"server.wrap: the subscriptions of this state were put with {_shown(known)}, not {_shown(wrap)};"
            " keep the setting, or start with an empty state and put them again"
        )


def note_wrap(store: MessageStore, wrap: Mapping[str, str], change: StoreChange) -> None:
    """Record the setting with which the first subscription is put."""
    if wrap or store.record(WRAP, "") is not None:
        change.records.append((WRAP, "", msgspec.json.encode(dict(wrap))))


def _shown(wrap: Mapping[str, str]) -> str:
    return ",".join(f"{name}={mode}" for name, mode in wrap.items()) or "no attributes"
