"""Links between brokers over WebSocket: greeting, frames in pieces, calls that are repeated, and views of all that."""
