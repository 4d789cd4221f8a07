"""How often the sampled relation differs from the exact one, beside what [SPATIAL] section 5.1 reports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from report import Accuracy
from rich.console import Console
from rich.progress import track
from scans import density, messages_of
from timing import say

import contrada as ct
from contrada.papers.spatial.sampled import relate_sampled
from generators import synthetic

PAPER = {2_000: 0.00089, 12_000: 0.00015}  # points per half-length of the universe: error rate
APART = (ct.Relation.DISJOINT, ct.Relation.MEETS)  # a polygon-intersection algorithm answers no


def run(seed: int, quick: bool) -> Iterator[Accuracy]:
    """Error rates for messages of 20 points, the densities of the paper, halo off and on."""
    rng = np.random.default_rng(seed)
    constraints = synthetic.paper_regions(rng, 1_000 if quick else 10_000)
    messages = list(messages_of(rng, 3 if quick else 20, "20 points"))
    exact = [ct.relate(message, constraints) for message in messages]
    for per_half_length, paper in PAPER.items():
        for halo in (False, True):
            say(f"accuracy: {per_half_length:,} points per half-length, halo {'on' if halo else 'off'}")
            yield rate(messages, constraints, exact, per_half_length, halo, paper)


def rate(
    messages: list[ct.Region],
    constraints: ct.RegionArray,
    exact: list[np.ndarray],
    per_half_length: int,
    halo: bool,
    paper: float,
) -> Accuracy:
    """The share of pairs that differ, as yes/no of polygon intersection and as one of eight."""
    wrong_intersection = wrong_relation = 0
    known = list(zip(messages, exact, strict=True))
    console = Console(stderr=True)
    for message, right in track(known, "scanning", console=console, transient=True, disable=not console.is_terminal):
        sampled = relate_sampled(message, constraints, density(per_half_length), halo=halo)
        wrong_relation += int((sampled != right).sum())
        wrong_intersection += int((np.isin(sampled, APART) != np.isin(right, APART)).sum())
    pairs = len(messages) * len(constraints)
    return Accuracy(
        "20 points", pairs, per_half_length, halo, wrong_intersection / pairs, wrong_relation / pairs, paper
    )
