"""Sources: records of a topic of Kafka, NATS or MQTT, published once each."""

from contrada.service.sources.source_run import SourceView
from contrada.service.sources.sources import TopicSources

__all__ = ["SourceView", "TopicSources"]
