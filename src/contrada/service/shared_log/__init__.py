"""A log that several servers share, in JetStream or Kafka: all of them apply its records in the same order."""
