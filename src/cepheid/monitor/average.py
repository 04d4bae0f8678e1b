"""An average over distributed sensors, on the right side of a threshold with few messages (chapter 5)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Protocol

import numpy as np

from cepheid.monitor.events import Balanced, ThresholdCrossed, Time
from cepheid.monitor.kernels import Bools, Floats, Ints
from cepheid.monitor.readings import Readings

FIRST_LOOK, LONGEST_LOOK = 64, 65_536
"""How many readings are compared with the sensors' thresholds at a time: more, as long as none is beyond."""


class AlertSink(Protocol):
    """Where alerts go. The paper calls it ISend."""

    def signal(self, event: ThresholdCrossed) -> None: ...


class JsonLines:
    """Writes each alert as a line of JSON."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def signal(self, event: ThresholdCrossed) -> None:
        row = {"time": str(event.time), "average": event.average, "threshold": event.threshold, "below": event.below}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


class AverageMonitor:
    """Knows at every moment whether the average of all sensors' last readings is below a threshold.

    Each sensor has a threshold of its own, and the mean of these is the threshold; a sensor that is on the right side
    of its own keeps quiet. When one is not, the coordinator asks others, those first that had the most to spare, until
    what they have to spare makes up for it: then no global violation is possible, and those that spoke get new
    thresholds that share out what is left. If all have been asked and it is not made up for, the average has crossed
    the threshold: sinks are told, and from then on sensors watch for the way back.

    ``weighted``: the average counts each reading by its weight, such as the number of vehicles.

    >>> readings = Readings(np.array([0, 1, 0, 1, 1]), np.array([60.0, 80.0, 45.0, 70.0, 40.0]))
    >>> monitor = AverageMonitor(nodes=2, threshold=50)
    >>> [(event.time, event.average) for event in monitor.run(readings) if event.type == "ThresholdCrossed"]
    [(4, 42.5)]
    >>> monitor.messages
    9
    """

    def __init__(
        self, nodes: int, threshold: float, *, weighted: bool = False, sinks: Iterable[AlertSink] = ()
    ) -> None:
        if nodes < 1 or not math.isfinite(threshold):
            raise ValueError(f"nodes is 1 or more and threshold a number, got {nodes!r} and {threshold!r}")
        self.nodes = nodes
        self.threshold = threshold
        self.below: bool | None = None
        """None until every sensor has had a reading."""
        self.sent: Counter[str] = Counter()
        """Messages by kind: from sensors reports and answers, to sensors polls and thresholds."""
        self.readings = 0
        self._weighted = weighted
        self._sinks = tuple(sinks)
        self._value = np.full(nodes, np.nan)
        self._weight = np.ones(nodes)
        self._limit = np.full(nodes, np.nan)
        """The sensors' own thresholds."""
        self._known = np.full(nodes, np.nan)
        """The value that the coordinator was told last."""

    @property
    def messages(self) -> int:
        return self.sent.total()

    @property
    def average(self) -> float:
        """Of the last readings. Nobody computes it while sensors are quiet; it is here to compare with."""
        return float(np.average(self._value, weights=self._weight))

    def run(self, readings: Readings | Iterable[Readings]) -> Iterator[Balanced | ThresholdCrossed]:
        """Takes readings as they come; yields when sensors were balanced and when the average crosses the threshold."""
        for batch in [readings] if isinstance(readings, Readings) else readings:
            yield from self._run(batch)

    def _run(self, batch: Readings) -> Iterator[Balanced | ThresholdCrossed]:
        weight = batch.weight if self._weighted else None
        if self._weighted and weight is None:
            raise ValueError("an average with weights needs Readings with weight=")
        if len(batch.node) and not (batch.node.min() >= 0 and batch.node.max() < self.nodes):
            raise ValueError(
                f"sensors are numbered from 0 to {self.nodes - 1}; got {batch.node.min()} to {batch.node.max()}"
            )
        amount = batch.value if weight is None else weight * (batch.value - self.threshold)
        ends = _ends(batch)
        place, look = 0, FIRST_LOOK
        while place < len(amount):
            beyond = self._beyond(amount[place : place + look], batch.node[place : place + look])
            found = beyond.argmax() if beyond.any() else -1
            stop = min(place + look, len(amount)) if found < 0 else int(ends[place + found])
            look = min(2 * look, LONGEST_LOOK) if found < 0 else FIRST_LOOK
            nodes = batch.node[place:stop]
            self._value[nodes] = batch.value[place:stop]  # of several readings of a sensor, the last one stays
            if weight is not None:
                self._weight[nodes] = weight[place:stop]
            self.readings += stop - place
            place = stop
            if found >= 0:
                event = self._resolve(nodes, _time(batch, stop - 1))
                if event is not None:
                    yield event

    def _beyond(self, amount: Floats, node: Ints) -> Bools:
        """Which readings a sensor has to report."""
        if self.below is None:
            return np.ones(len(node), np.bool_)
        return amount >= self._limit[node] if self.below else amount < self._limit[node]

    def _amounts(self) -> Floats:
        """What is summed, and compared with :attr:`_goal`: with weights, what each sensor has over the threshold."""
        return self._weight * (self._value - self.threshold) if self._weighted else self._value

    @property
    def _goal(self) -> float:
        return 0.0 if self._weighted else self.nodes * self.threshold

    def _resolve(self, nodes: Ints, time: Time) -> Balanced | ThresholdCrossed | None:
        amounts = self._amounts()
        if self.below is None:
            first = np.unique(nodes[np.isnan(self._known[nodes])])
            self.sent["report"] += len(first)
            self._known[first] = amounts[first]
            if np.isnan(self._value).any():
                return None
            return self._all_known(time)
        mine = np.unique(nodes)
        violators = mine[self._beyond(amounts[mine], mine)]
        if not len(violators):  # a later reading of the same moment is on the right side again
            return None
        spoken = np.zeros(self.nodes, np.bool_)
        spoken[violators] = True
        self.sent["report"] += len(violators)
        side = -1.0 if self.below else 1.0
        spare = side * (self._known - self._limit)
        asked: list[int] = []
        while True:
            # At least this much is to spare if every quiet sensor is just within its own threshold.
            excess = side * (math.fsum([*amounts[spoken], *self._limit[~spoken], -self._goal]))
            self._known[spoken] = amounts[spoken]
            if spoken.all():
                return self._all_known(time, Balanced(time, violators, np.array(asked, np.int64), self.messages))
            if excess > 0 or (excess == 0 and not self.below):
                self._limit[spoken] = amounts[spoken] - side * excess / spoken.sum()
                self.sent["threshold"] += int(spoken.sum())
                return Balanced(time, violators, np.array(asked, np.int64), self.messages)
            nearest = int(np.where(spoken, -np.inf, spare).argmax())
            spoken[nearest] = True
            asked.append(nearest)
            self.sent["poll"] += 1
            self.sent["answer"] += 1

    def _all_known(self, time: Time, otherwise: Balanced | None = None) -> Balanced | ThresholdCrossed | None:
        """Every sensor has spoken: on which side the average is, and thresholds for all."""
        amounts = self._amounts()
        excess = math.fsum([*amounts, -self._goal])
        before, self.below = self.below, excess < 0
        self._limit = amounts - excess / self.nodes
        self._known = amounts.copy()
        self.sent["threshold"] += self.nodes
        if before == self.below or (before is None and not self.below):
            return None if otherwise is None else Balanced(time, otherwise.violators, otherwise.asked, self.messages)
        crossed = ThresholdCrossed(time, self.average, self.threshold, self.below, self.messages)
        for sink in self._sinks:
            sink.signal(crossed)
        return crossed


def _ends(batch: Readings) -> Ints:
    """For each reading, the place after the last one of the same moment."""
    count = len(batch.node)
    if batch.time is None:
        return np.arange(1, count + 1)
    last = np.flatnonzero(np.append(batch.time[1:] != batch.time[:-1], True))
    return last[np.searchsorted(last, np.arange(count))] + 1


def _time(batch: Readings, place: int) -> Time:
    if batch.time is None:
        return place
    value = batch.time[place]
    return value if isinstance(value, np.datetime64) else value.item()
