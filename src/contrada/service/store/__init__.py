"""The durable store: the log of messages with their match lists, and records of everything else."""
