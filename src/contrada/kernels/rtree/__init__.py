"""R-trees of boxes: choose, split, merge."""
