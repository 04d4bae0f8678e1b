"""What nodes observe, in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.monitor.kernels import Floats, Ints


@dataclass(frozen=True, eq=False)
class Observations:
    """Observation i is (x[i], y[i]), at node[i]. Those that follow one another at the same time are one moment.

    ``time`` is any array that has equal and different values; without it, each observation is a moment of its own.

    >>> batch = Observations(node=[0, 1], x=[[1.0, 2.0], [1.0, 3.0]], y=[5.0, 7.0], time=[10, 10])
    >>> batch.x.shape, batch.step.tolist()
    ((2, 2), [0, 0])
    """

    node: Ints
    x: Floats
    y: Floats
    time: npt.NDArray[Any] | None = None

    def __init__(
        self, node: npt.ArrayLike, x: npt.ArrayLike, y: npt.ArrayLike, time: npt.ArrayLike | None = None
    ) -> None:
        object.__setattr__(self, "node", np.ascontiguousarray(node, np.int64))
        object.__setattr__(self, "x", np.ascontiguousarray(x, np.float64))
        object.__setattr__(self, "y", np.ascontiguousarray(y, np.float64))
        object.__setattr__(self, "time", None if time is None else np.asarray(time))
        count = len(self.node)
        shapes = {"x": self.x.shape, "y": self.y.shape, "time": None if self.time is None else self.time.shape}
        if self.node.ndim != 1 or self.x.ndim != 2 or self.x.shape[0] != count or self.y.shape != (count,):
            raise ValueError(f"{count} observations have x of shape ({count}, dimension) and {count} y; got {shapes}")
        if self.time is not None and self.time.shape != (count,):
            raise ValueError(f"{count} observations have {count} times; got {shapes}")
        if not (np.isfinite(self.x).all() and np.isfinite(self.y).all()):
            bad = int(np.flatnonzero(~(np.isfinite(self.x).all(axis=1) & np.isfinite(self.y)))[0])
            raise ValueError(
                f"observation {bad} is not finite: x = {self.x[bad].tolist()}, y = {self.y[bad]}; leave such ones out"
            )

    @property
    def step(self) -> Ints:
        """Numbers the moments."""
        if self.time is None:
            return np.arange(len(self.node))
        return np.append(0, np.cumsum(self.time[1:] != self.time[:-1]))[: len(self.node)].astype(np.int64)

    @classmethod
    def rounds(cls, x: npt.ArrayLike, y: npt.ArrayLike, start: int = 0) -> Observations:
        """From x of shape (rounds, nodes, dimension) and y of shape (rounds, nodes): in a round each node has one."""
        xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if xs.ndim != 3 or ys.shape != xs.shape[:2]:
            raise ValueError(
                f"rounds are x of shape (rounds, nodes, dimension) and y of shape (rounds, nodes); got {xs.shape} and "
                f"{ys.shape}"
            )
        count, nodes, size = xs.shape
        number = np.arange(start, start + count)
        return cls(np.tile(np.arange(nodes), count), xs.reshape(-1, size), ys.reshape(-1), np.repeat(number, nodes))

    @classmethod
    def table(
        cls,
        table: pa.Table,
        *,
        node: str,
        response: str,
        features: Sequence[str],
        time: str | None,
        names: Sequence[Any],
    ) -> Observations:
        """From columns of a table. ``names``: what the nodes are called there, in the order of their numbers."""
        numbers = pc.index_in(table[node], pa.array(names, table.schema.field(node).type))
        if numbers.null_count:
            unknown = pc.unique(table[node].filter(pc.is_null(numbers))).to_pylist()
            raise ValueError(f"column {node!r} has {unknown[:5]!r}, which are none of the nodes {list(names)!r}")
        x = np.stack([_numbers(table, name) for name in features], axis=1)
        return cls(numbers.to_numpy(), x, _numbers(table, response), None if time is None else table[time].to_numpy())


def _numbers(table: pa.Table, name: str) -> Floats:
    column = table[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        raise ValueError(f"column {name!r} should hold numbers, and holds {column.type}")
    if column.null_count:
        row = column.is_null().to_numpy().argmax()
        raise ValueError(
            f"column {name!r} has no number in row {row} and {column.null_count - 1} others; leave them out"
        )
    found: Floats = column.to_numpy().astype(np.float64)
    return found


Stream: TypeAlias = Observations | tuple[Any, Any] | Iterable[Observations | tuple[Any, Any]]
"""Observations, or rounds as a pair of arrays; or an iterable of them."""


def batches(stream: Stream) -> Iterator[Observations]:
    """A stream as batches; rounds are numbered through."""
    start = 0
    for batch in [stream] if isinstance(stream, Observations | tuple) else stream:
        if isinstance(batch, Observations):
            yield batch
        else:
            x, y = batch
            yield Observations.rounds(x, y, start)
            start += len(y)
