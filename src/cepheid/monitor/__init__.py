"""Watching a model, or an average, over distributed streams with few messages."""

from cepheid.monitor.average import AlertSink, AverageMonitor, JsonLines
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
from cepheid.monitor.readings import Readings, read_readings

__all__ = [
    "AlertSink",
    "AverageMonitor",
    "Balanced",
    "JsonLines",
    "LeastSquaresMonitor",
    "ModelDrift",
    "MonitorEvent",
    "Observations",
    "Pooled",
    "Readings",
    "Started",
    "ThresholdCrossed",
    "Waiting",
    "event_table",
    "read_readings",
]
