"""The DR-tree: an overlay of peers, each with its subscriptions, that routes messages by content."""
