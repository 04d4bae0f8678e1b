"""Small streams make little work: here a plan is changed for any gain, so that there are changes to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cepheid.adapt import worth


@pytest.fixture(autouse=True, scope="module")
def any_gain_counts(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if "test_worth" not in request.module.__name__:
            patch.setattr(worth, "EVENT", 0)
            patch.setattr(worth, "WORTH", 1.0)
        yield
