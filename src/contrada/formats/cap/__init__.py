"""Read CAP alerts: XML, areas, and one message per block of information."""
