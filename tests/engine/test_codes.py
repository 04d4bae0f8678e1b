"""Numbers for the keys of PARTITION BY: equal keys have equal numbers, as long as a row has them."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cepheid.engine.fields import PartitionCodes

values = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
rows = st.lists(st.tuples(values, values | st.none()), max_size=40)


def codes_of(coder: PartitionCodes, keys: list[tuple[int, int | None]]) -> list[int]:
    columns = [np.array([key[place] or 0 for key in keys], dtype=np.int64) for place in range(2)]
    nulls = [np.array([key[place] is None for key in keys], dtype=np.bool_) for place in range(2)]
    return coder.of(columns, nulls).tolist()


@given(st.lists(rows, max_size=5), st.sets(st.integers(0, 30)))
def test_as_a_dictionary_would(batches: list[list[tuple[int, int | None]]], gone: set[int]) -> None:
    coder = PartitionCodes()
    known: dict[tuple[int, int | None], int] = {}
    following = 0
    for batch in batches:
        for key in batch:
            if key not in known:
                known[key] = following
                following += 1
        assert codes_of(coder, batch) == [known[key] for key in batch]
        assert len(coder) == len(known)
        # What no row has any more is forgotten, and comes back under another number.
        known = {key: code for key, code in known.items() if code not in gone}
        coder.keep(np.array(list(known.values()), dtype=np.int64))
        written, coder = json.loads(json.dumps(coder.dump())), PartitionCodes()
        coder.load(written)


def test_many_keys_of_a_few_bits() -> None:
    """Doubles have their bits at the top, and times are far apart: neither is slow, nor mixed up."""
    for step in (1, 2**20, 2**32, 2**44):
        keys = np.arange(200_000, dtype=np.int64) * step
        coder = PartitionCodes()
        found = coder.of([keys], [np.zeros(len(keys), dtype=np.bool_)])
        assert found.tolist() == list(range(len(keys)))
        assert coder.of([keys[::-1]], [np.zeros(len(keys), dtype=np.bool_)]).tolist() == found[::-1].tolist()
