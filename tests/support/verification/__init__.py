"""Long checks that run as programs: a million pairs, damaged files."""
