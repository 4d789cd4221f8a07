"""The headline of a report."""

import re


def cards(page):
    """The values in the headline of a page, by their names."""
    return dict(re.findall(r'<div class="card"><dt>([^<]*)</dt><dd>([^<]*)</dd>', page))
