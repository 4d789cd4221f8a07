"""Limits: their defaults, their variables, their errors."""

import pytest

from contrada.errors import LimitError
from contrada.limits import DEFAULTS, check_limit, limit, variable


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_variable_changes_each_limit(name, limited):
    check_limit(name, DEFAULTS[name][0], "it")
    with pytest.raises(LimitError, match=variable(name)):
        check_limit(name, DEFAULTS[name][0] + 1, "it")
    limited(**{name: 3})
    with pytest.raises(LimitError, match="the limit is 3 "):
        check_limit(name, 4, "it")


@pytest.mark.parametrize("text", ["", "0", "-1", "ten", "1e3", "٣", "9" * 30])
def test_a_variable_that_is_no_number_is_an_error(text, limited):
    limited(nesting=text)
    with pytest.raises(LimitError, match="CONTRADA_MAX_NESTING"):
        limit("nesting")
