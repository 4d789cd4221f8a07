"""Draw outlines for display: SVG and HTML for notebooks, Matplotlib axes. Nothing here is exact, or imported early."""
