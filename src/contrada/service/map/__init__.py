"""The server's side of the live map: what subscriptions and messages look like, live and in the past, and why."""
