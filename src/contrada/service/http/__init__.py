"""The service over HTTP: publish, subscriptions, events as Server-Sent Events, long poll and WebSocket."""
