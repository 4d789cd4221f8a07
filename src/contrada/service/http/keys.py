"""API keys over HTTP, and as records of the store."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import msgspec

from contrada.service.access.keys import SCOPES, KeyRecord, make_key, make_record
from contrada.service.catalog import SEPARATOR
from contrada.service.http.context import Context
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.schemas import KeyAnswer, KeyList, instant
from contrada.service.http.wire import check_name
from contrada.service.problems import CONFLICT, Problem
from contrada.service.service import Service

KEY = "key"  # kind of the records
FIRST_TENANT, FIRST_NAME, CONFIGURED_NAME = "default", "admin", "configured admin"


async def load_keys(context: Context, service: Service) -> str | None:
    """Load the keys of a store; return an admin key that was made because there was none."""
    ring, now = context.gate.ring, context.gate.clock()
    service.watch_records(KEY, partial(_follow, context))
    for name, value in await service.records(KEY):
        _follow(context, name, value)
    configured = context.settings.access.admin_key
    if configured is not None:
        if ring.find(configured, now) is None:
            ring.add(make_record(configured, CONFIGURED_NAME, FIRST_TENANT, SCOPES, now))
        return None
    if any("admin" in record.scopes for record in ring.records()):
        return None
    key = make_key()
    record = make_record(key, FIRST_NAME, FIRST_TENANT, SCOPES, now)
    if await service.write_records([(KEY, _name(record), msgspec.msgpack.encode(record))], is_new=True):
        _follow(context, _name(record), msgspec.msgpack.encode(record))
        return key
    return None  # another server that follows the same log has just made one


def _follow(context: Context, name: str, value: bytes | None) -> None:
    """Take a key that was made or revoked, by this server or another one."""
    tenant, _, key = name.partition(SEPARATOR)
    ring = context.gate.ring
    known = ring.named(tenant, key)
    record = None if value is None else msgspec.msgpack.decode(value, type=KeyRecord)
    if known == record:
        return
    if known is not None:
        ring.revoke(tenant, key)
        context.streams.end_of_key(tenant, key)
    if record is not None:
        with suppress(Problem):  # it is known by another name, in the settings of this server
            ring.add(record)


async def _add(context: Context, service: Service, record: KeyRecord) -> None:
    context.gate.ring.add(record)
    try:
        await service.write_records([(KEY, _name(record), msgspec.msgpack.encode(record))])
    except BaseException:
        context.gate.ring.revoke(record.tenant, record.name)
        raise


def _name(record: KeyRecord) -> str:
    return record.tenant + SEPARATOR + record.name


def _answer(record: KeyRecord, key: str | None = None) -> KeyAnswer:
    expires = None if record.expires is None else instant(record.expires * 1000)
    return KeyAnswer(record.name, record.tenant, sorted(record.scopes), instant(record.created * 1000), expires, key)


async def create_key(call: Call) -> Reply:
    """Make a key; its secret is in this answer only."""
    asked, key = call.body, make_key()
    tenant = call.tenant if asked.tenant is None else asked.tenant
    expires = None if asked.expires is None else asked.expires.timestamp()
    record = make_record(key, asked.name, tenant, asked.scopes, call.context.gate.clock(), expires)
    await _add(call.context, call.service, record)
    return Reply(201, _answer(record, key))


async def list_keys(call: Call) -> Reply:
    """Return all keys without their secrets."""
    return Reply(200, KeyList([_answer(record) for record in call.context.gate.ring.records()]))


async def revoke_key(call: Call) -> Reply:
    """Revoke a key, and close the streams and sockets that were opened with it or with tokens that it made."""
    tenant, name = check_name("tenant", call.path["tenant"]), check_name("name", call.path["name"])
    if (tenant, name) == (call.tenant, call.principal.name):
        raise CONFLICT("a key cannot revoke itself")
    if (tenant, name) == (FIRST_TENANT, CONFIGURED_NAME):
        raise CONFLICT("this key comes from the configuration; change it there")
    record = call.context.gate.ring.revoke(tenant, name)
    try:
        await call.service.write_records([(KEY, _name(record), None)])
    except BaseException:
        call.context.gate.ring.add(record)
        raise
    call.context.streams.end_of_key(tenant, name)
    return Reply(204)
