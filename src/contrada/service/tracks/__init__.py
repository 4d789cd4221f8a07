"""Tracked subscriptions: what they ask for, the objects that they watch, and how those survive a restart."""
