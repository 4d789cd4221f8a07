"""Store subscriptions: packed levels, a buffer, snapshots that readers take, and files."""
