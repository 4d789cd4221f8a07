"""R-trees of boxes: choosing, splitting, merging."""
