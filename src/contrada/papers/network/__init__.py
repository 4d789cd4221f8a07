"""A network of brokers measured: what covering, merging and advertisements save beside flooding and the DR-tree."""
