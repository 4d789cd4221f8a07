"""Webhooks: signed deliveries of a subscriber's events to HTTP endpoints."""

from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.webhooks.endpoints import EndpointRequest, EndpointView
from contrada.service.webhooks.sender import HttpSender, Timeouts
from contrada.service.webhooks.webhooks import WebhookLimits, Webhooks

__all__ = ["EndpointRequest", "EndpointView", "HttpSender", "RetryPolicy", "Timeouts", "WebhookLimits", "Webhooks"]
