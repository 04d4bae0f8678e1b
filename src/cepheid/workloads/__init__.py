"""Made-up event streams of any size, for tests, examples and benchmarks: the same seed gives the same table."""

from cepheid.workloads.bank import card_payments
from cepheid.workloads.soccer import soccer_positions
from cepheid.workloads.stocks import stock_quotes
from cepheid.workloads.traffic import traffic_sensors

__all__ = ["card_payments", "soccer_positions", "stock_quotes", "traffic_sensors"]
