"""The live map's page at `/` and its files under `/assets`: static, compressed, under a strict security policy."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from contrada.service.http.endpoints import ApiEndpoint, Call, Reply
from contrada.service.problems import NOT_FOUND
from contrada.web import HOW_TO_BUILD, page_folder

KINDS = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".mjs": b"text/javascript; charset=utf-8",
    ".pbf": b"application/x-protobuf",
    ".svg": b"image/svg+xml",
}
# Names of assets hold a hash of their content, so a name never changes its content. The page itself may.
FOREVER = (b"cache-control", b"public, max-age=31536000, immutable")
REVALIDATE = (b"cache-control", b"no-cache")
NOT_BUILT = f"The live map is not built: {HOW_TO_BUILD}.\n\nAll routes of this server: /docs\n"


class PageFile(NamedTuple):
    """A file of the page: its media type, content, the same compressed, and a tag of the content."""

    kind: bytes
    content: bytes
    compressed: bytes
    tag: bytes


def security_headers(tiles: str | None) -> tuple[tuple[bytes, bytes], ...]:
    """Return headers that let the page run its own scripts and styles, and connect to this server and the user's tiles.

    MapLibre's style sheet holds its icons as data: addresses; nothing else may be inline.

    >>> dict(security_headers("https://tiles.example:8443/{z}/{x}/{y}.png"))[b"content-security-policy"].decode()
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
connect-src 'self' https://tiles.example:8443; worker-src 'self'; base-uri 'none'; form-action 'none'; \
frame-ancestors 'none'"
    """
    parts = urlsplit(tiles or "")
    origin = f" {parts.scheme}://{parts.netloc}" if parts.netloc else ""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        f"connect-src 'self'{origin}; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (
        (b"content-security-policy", policy.encode("latin-1", "replace")),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )


@cache
def read_page_file(path: Path) -> PageFile:
    """Read and compress a file once for the life of the process."""
    content = path.read_bytes()
    tag = b'"%b"' % hashlib.sha256(content).hexdigest()[:32].encode()
    return PageFile(KINDS[path.suffix], content, gzip.compress(content, 6, mtime=0), tag)


async def get_page(call: Call) -> Reply:
    """Return the page of the live map; say how to build it if that was not done."""
    if not call.context.settings.map.enabled:
        raise NOT_FOUND("there is no map on this server (map.enabled); /docs lists all routes")
    folder = page_folder()
    if folder is None:
        return Reply(404, NOT_BUILT.encode(), kind=b"text/plain; charset=utf-8")
    return await _reply(call, folder / "index.html", REVALIDATE)


async def get_asset(call: Call) -> Reply:
    """Return a file of the page by its name."""
    folder, name = page_folder(), call.path["name"]
    assets = {} if folder is None else _assets(folder)
    if name not in assets or not call.context.settings.map.enabled:
        raise NOT_FOUND(f"the live map has no file {name[:200]!r}")
    return await _reply(call, assets[name], FOREVER)


@cache
def _assets(folder: Path) -> dict[str, Path]:
    """Return the files by name: a name from a request is looked up and never becomes part of a path."""
    return {path.name: path for path in (folder / "assets").iterdir() if path.suffix in KINDS}


async def _reply(call: Call, path: Path, caching: tuple[bytes, bytes]) -> Reply:
    file = await asyncio.to_thread(read_page_file, path)
    own = (caching, (b"etag", file.tag), (b"vary", b"accept-encoding"))
    headers = (*own, *security_headers(call.context.settings.map.tiles))
    if call.headers.get("if-none-match", "").encode("latin-1", "replace") == file.tag:
        return Reply(304, b"", headers, file.kind)
    if "gzip" in call.headers.get("accept-encoding", ""):
        return Reply(200, file.compressed, ((b"content-encoding", b"gzip"), *headers), file.kind)
    return Reply(200, file.content, headers, file.kind)


PAGE_ROUTES = (
    ApiEndpoint("GET", "/", None, "The live map", {200: None}, get_page, kinds=("text/html",)),
    ApiEndpoint(
        "GET", "/assets/{name}", None, "A file of the live map", {200: None}, get_asset, kinds=("text/javascript",)
    ),
)
