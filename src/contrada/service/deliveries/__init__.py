"""Deliveries of a subscriber's events in order and at least once: what webhooks and sinks share."""
