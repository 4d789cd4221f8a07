"""Files and tables into rows of valid geometry and a quarantine."""
