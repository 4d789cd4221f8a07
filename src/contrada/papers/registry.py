"""All exhibits by name, in the order of the papers."""

from __future__ import annotations

from contrada.papers.cover.exhibits import EXHIBITS as COVER
from contrada.papers.cover.link import EXHIBITS as LINK
from contrada.papers.exhibit import SHOWN_CHARACTERS, Exhibit, ExperimentError
from contrada.papers.network.exhibits import EXHIBITS as NETWORK
from contrada.papers.overlay.exhibits import EXHIBITS as OVERLAY
from contrada.papers.overlay.further_exhibits import EXHIBITS as OVERLAY_FURTHER
from contrada.papers.spatial.exhibits import EXHIBITS as SPATIAL
from contrada.papers.spatial.splitting import EXHIBITS as SPLITS
from contrada.papers.spatial.table_3 import EXHIBITS as TABLE_3

_ALL = (*SPATIAL, *TABLE_3, *SPLITS, *COVER, *LINK, *OVERLAY, *OVERLAY_FURTHER, *NETWORK)
EXHIBITS: dict[str, Exhibit] = {exhibit.name: exhibit for exhibit in _ALL}
PAPERS = tuple(dict.fromkeys(exhibit.paper for exhibit in EXHIBITS.values()))


def find_exhibits(names: list[str]) -> list[Exhibit]:
    """Return the named exhibits, each once; the name of a paper that no exhibit has stands for all of its exhibits.

    >>> [exhibit.name for exhibit in find_exhibits(["cover-table-1", "overlay"])][:2]
    ['cover-table-1', 'overlay-figure-7']
    """
    found: dict[str, Exhibit] = {}
    for name in names:
        of_paper = {each: exhibit for each, exhibit in EXHIBITS.items() if name == exhibit.paper}
        chosen = {name: EXHIBITS[name]} if name in EXHIBITS else of_paper
        if not chosen:
            raise ExperimentError(f"unknown exhibit {name!r:.{SHOWN_CHARACTERS}}; `contrada experiment list` names all")
        found |= chosen
    return list(found.values())
