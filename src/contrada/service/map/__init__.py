"""Serve the live map: shapes of subscriptions and messages, live and past, and explanations of matches."""
