"""Sinks: events of a subscriber to a topic of Kafka, NATS or MQTT, in order and at least once."""

from contrada.service.sinks.sinks import SinkView, TopicSinks

__all__ = ["SinkView", "TopicSinks"]
