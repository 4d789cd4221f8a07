"""Structured Streaming against subscriptions that change."""
