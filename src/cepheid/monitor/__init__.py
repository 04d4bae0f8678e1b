"""Watching a model, or an average, over distributed streams with few messages."""

from cepheid.monitor.events import (
    Balanced,
    ModelDrift,
    MonitorEvent,
    Pooled,
    Started,
    ThresholdCrossed,
    Waiting,
    event_table,
)
from cepheid.monitor.least_squares import LeastSquaresMonitor
from cepheid.monitor.observations import Observations

__all__ = [
    "Balanced",
    "LeastSquaresMonitor",
    "ModelDrift",
    "MonitorEvent",
    "Observations",
    "Pooled",
    "Started",
    "ThresholdCrossed",
    "Waiting",
    "event_table",
]
