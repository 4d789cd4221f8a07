"""The demonstration: a made-up district and the whole pipeline on it."""
