"""Messages and subscriptions from the formats that people have."""
