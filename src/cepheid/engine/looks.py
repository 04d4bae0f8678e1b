"""What was known of the stream at a look, as a snapshot holds it.

Another plan may be compared with the one in force by the last looks, and what it asks of them may never have been asked
before. So what is kept is what they can be asked by: some events of each variable, as they were tried together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.engine.comparisons import Comparisons
from cepheid.engine.joint import Joint
from cepheid.engine.program import Compared, Side
from cepheid.engine.sample import is_tried
from cepheid.engine.snapshot import Arrays, below, prefixed
from cepheid.pattern.normal import Branch
from cepheid.stats.estimates import Estimates


def dump_looks(looks: Sequence[tuple[Branch, Estimates]], branches: Sequence[Branch]) -> tuple[Any, Arrays]:
    """What JSON can hold, and a few arrays: each of those that a snapshot has takes a tenth of a millisecond."""
    dumped = [_dump(branch, estimates) for branch, estimates in looks]
    arrays = {f"{place} {name}": found for place, (_, own) in enumerate(dumped) for name, found in own.items()}
    layout = [[name, found.dtype.str, found.shape] for name, found in arrays.items()]
    kinds: dict[str, list[npt.NDArray[Any]]] = {}
    for found in arrays.values():
        kinds.setdefault(found.dtype.str, []).append(found.reshape(-1))
    known = [[branches.index(branch), meta] for (branch, _), (meta, _) in zip(looks, dumped, strict=True)]
    return [known, layout], {kind: np.concatenate(parts) for kind, parts in kinds.items()}


def load_looks(branches: Sequence[Branch], meta: Any, arrays: Arrays) -> list[tuple[Branch, Estimates]]:
    """What :func:`dump_looks` wrote."""
    known, layout = meta
    own: list[Arrays] = [{} for _ in known]
    begin = dict.fromkeys(arrays, 0)
    for label, kind, shape in layout:
        place, _, name = label.partition(" ")
        end = begin[kind] + int(np.prod(shape))
        own[int(place)][name] = arrays[kind][begin[kind] : end].reshape(shape)
        begin[kind] = end
    return [(branches[of], _load(branches[of], look, mine)) for (of, look), mine in zip(known, own, strict=True)]


def _dump(branch: Branch, estimates: Estimates) -> tuple[dict[str, Any], Arrays]:
    conditions = branch.all_conditions
    meta: dict[str, Any] = {
        "counts": list(estimates.counts.items()),
        "selectivity": [[conditions.index(c), share] for c, share in estimates.selectivity.items()],
        "same partition": estimates.same_partition,
    }
    if not (isinstance(estimates.joint, Joint) and isinstance(estimates.joint.judge, Comparisons)):
        return meta, {}
    joint, judge = estimates.joint, estimates.joint.judge
    sides = list(judge.values)
    arrays: Arrays = prefixed("times", joint.times)
    arrays |= {f"value {place}": found for place, found in enumerate(judge.values.values())}
    meta["joint"] = {
        "most": joint.most,
        "sides": [[side.variable, side.column, side.is_float] for side in sides],
        "compared": [
            [conditions.index(condition), found.operator, sides.index(found.left), sides.index(found.right)]
            for condition, found in judge.compared.items()
            if found.left in judge.values and found.right in judge.values
        ],
    }
    if all(c in judge.compared for c in branch.conditions if is_tried(c)):
        return meta, arrays  # what was asked can be asked again
    meta["joint"]["good"] = [[x, y, None if good is None else good.shape] for (x, y), good in joint.good.items()]
    arrays |= {f"good {x} {y}": np.packbits(good) for (x, y), good in joint.good.items() if good is not None}
    meta["joint"]["grown"] = [[sorted(names), found and found[0]] for names, found in joint.grown.items()]
    for place, found in enumerate(joint.grown.values()):
        arrays |= prefixed(f"grown {place}", {} if found is None else found[1])
    return meta, arrays


def _load(branch: Branch, meta: dict[str, Any], arrays: Arrays) -> Estimates:
    conditions = branch.all_conditions
    estimates = Estimates(
        dict(meta["counts"]),
        {conditions[place]: share for place, share in meta["selectivity"]},
        meta["same partition"],
    )
    found = meta.get("joint")
    if found is None:
        return estimates
    sides = [Side(*side) for side in found["sides"]]
    compared = {
        conditions[place]: Compared(operator, sides[left], sides[right])
        for place, operator, left, right in found["compared"]
    }
    values = {side: arrays[f"value {place}"] for place, side in enumerate(sides)}
    joint = Joint(branch, below("times", arrays), Comparisons(compared, values), found["most"])
    for x, y, shape in found.get("good", ()):
        bits = None if shape is None else np.unpackbits(arrays[f"good {x} {y}"], count=int(np.prod(shape)))
        joint.good[x, y] = None if bits is None else bits.astype(np.bool_).reshape(shape)
    for place, (names, chance) in enumerate(found.get("grown", ())):
        joint.grown[frozenset(names)] = None if chance is None else (chance, below(f"grown {place}", arrays))
    return Estimates(estimates.counts, estimates.selectivity, estimates.same_partition, joint)
