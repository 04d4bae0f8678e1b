"""Small streams make little work: here a plan is changed for any gain, so that there are changes to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cepheid.adapt import follower, worth


@pytest.fixture(autouse=True, scope="module")
def any_gain_counts(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if not request.module.__name__.endswith("test_worth"):
            patch.setattr(worth, "EVENT", 0)
            patch.setattr(worth, "WORTH", 1.0)
            patch.setattr(follower, "WORTH", 1.0)
        yield
