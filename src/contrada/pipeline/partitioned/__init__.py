"""Tables in partitions: larger than one executor's memory."""
