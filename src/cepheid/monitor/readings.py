"""Readings of sensors, as the average monitor takes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cepheid.monitor.kernels import Floats, Ints

COLUMNS = ("ts", "sensor", "velocity", "vehicles")


@dataclass(frozen=True, eq=False)
class Readings:
    """Reading i is value[i], of sensor node[i]; ``weight`` is how much it counts, for an average with weights.

    Readings that follow one another at the same time are one moment; without times, each is a moment of its own.
    """

    node: Ints
    value: Floats
    time: npt.NDArray[Any] | None = None
    weight: Floats | None = None

    def __post_init__(self) -> None:
        count = len(self.node)
        for name in ("value", "time", "weight"):
            column = getattr(self, name)
            if column is not None and len(column) != count:
                raise ValueError(f"{count} readings have {count} of {name}; got {len(column)}")
        for name in ("value", "weight"):
            column = getattr(self, name)
            if column is not None and not np.isfinite(column).all():
                raise ValueError(f"{name} {int((~np.isfinite(column)).argmax())} is not a finite number; leave it out")
        if self.weight is not None and (self.weight < 0).any():
            raise ValueError(f"a weight is 0 or more; got {self.weight.min()}")

    @classmethod
    def table(cls, table: pa.Table, names: Sequence[Any] | None = None) -> Readings:
        """From a table with the columns ts, sensor, velocity and vehicles; ``names``: of the sensors, in order."""
        known = pc.unique(table["sensor"]).sort() if names is None else pa.array(names, table["sensor"].type)
        numbers = pc.index_in(table["sensor"], known)
        if numbers.null_count:
            unknown = pc.unique(table["sensor"].filter(pc.is_null(numbers))).to_pylist()
            raise ValueError(f"column 'sensor' has {unknown[:5]!r}, which are none of {known.to_pylist()!r}")
        return cls(
            numbers.to_numpy().astype(np.int64),
            table["velocity"].to_numpy().astype(np.float64),
            table["ts"].to_numpy(),
            table["vehicles"].to_numpy().astype(np.float64),
        )


def read_readings(path: Path) -> pa.Table:
    """A CSV file with, in this order: ISO 8601 time, sensor, velocity, number of vehicles.

    A line of names may come first.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "speeds.csv")
    >>> _ = file.write_text("2014-11-01T08:00:00,S1,87.5,12\\n2014-11-01T08:00:00,S2,63.0,20\\n")
    >>> read_readings(file).to_pylist()[1]
    {'ts': datetime.datetime(2014, 11, 1, 8, 0), 'sensor': 'S2', 'velocity': 63.0, 'vehicles': 20}
    """
    with path.open(encoding="utf-8-sig") as file:
        first = file.readline().strip()
    has_names = bool(first) and not re.match(r'"?\d{4}-?\d\d', first)
    text = {"ts": pa.string(), "sensor": pa.string(), "velocity": pa.float64(), "vehicles": pa.int64()}
    try:
        table = pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(column_names=list(COLUMNS), skip_rows=int(has_names)),
            convert_options=pyarrow.csv.ConvertOptions(column_types=text, strings_can_be_null=True),
        )
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: expected lines of time, sensor, velocity, number of vehicles: {error}") from None
    missing = [name for name in COLUMNS if table[name].null_count]
    if missing:
        row = int(table[missing[0]].is_null().to_numpy().argmax()) + 1 + has_names
        raise ValueError(f"{path}, line {row}: there is no {missing[0]}")
    return table.set_column(0, "ts", _moments(table["ts"], path))


def _moments(column: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    """Times with a zone are in UTC afterwards; those without stay without."""
    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        try:
            return column.cast(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path}: times are as in 2014-11-01T08:00:00, all with a zone or none: {error}") from None
