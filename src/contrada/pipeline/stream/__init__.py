"""Match streams of messages (Structured Streaming) against subscriptions that change."""
