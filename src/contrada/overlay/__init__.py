"""The DR-tree: an overlay of peers, each with subscriptions, that routes messages by content.

`Simulator` runs many peers in one process from a seed; `PeerServer` is one peer on the network.
"""

from contrada.overlay.peer import Peer
from contrada.overlay.rules import Rules
from contrada.overlay.serving import PeerServer
from contrada.overlay.simulation.simulator import Simulator
from contrada.overlay.space import PeerQueries, Space

__all__ = ["Peer", "PeerQueries", "PeerServer", "Rules", "Simulator", "Space"]
