"""The structures of the three papers as printed, and the experiments on them."""
