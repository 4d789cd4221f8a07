"""Tables in partitions, for subscriptions that exceed one executor's memory."""
