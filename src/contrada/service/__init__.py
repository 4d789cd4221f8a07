"""The service: a durable broker with HTTP, WebSocket and webhooks around the broker core."""
