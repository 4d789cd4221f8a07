"""Errors to problem details: no message of a fault of the server leaves it."""

from __future__ import annotations

import logging
import secrets

from contrada.errors import ContradaError
from contrada.service.access.addresses import RefusedAddressError
from contrada.service.engine import BusyError
from contrada.service.links.link_state import ExpectingError
from contrada.service.problems import BAD_WEBHOOK, INTERNAL_ERROR, STORAGE_FAILED, UNAVAILABLE, Problem, problem_of
from contrada.service.store.message_store import StoreError

log = logging.getLogger("contrada.service")


def problem_from(error: Exception) -> Problem:
    """Return the problem that answers an error; a fault of the server is logged under an id that the answer names."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, BusyError | ExpectingError):
        return UNAVAILABLE(str(error), retry_after=1)
    if isinstance(error, StoreError):  # its message names files of the server
        log.error("the store failed: %s", error)
        return STORAGE_FAILED("the store takes no changes at the moment; nothing was stored", retry_after=5)
    if isinstance(error, RefusedAddressError):  # its message tells how names resolve in the server's network
        log.warning("%s", error)
        return BAD_WEBHOOK("webhooks may not reach the address of this host")
    if isinstance(error, ContradaError):
        return problem_of(error)
    id = secrets.token_hex(8)
    log.error("request failed, id %s", id, exc_info=error)
    return INTERNAL_ERROR("the server has failed; its log has the details under this id", id=id)
