"""Which errors need no traceback. Apart from others, since both workers and the processes that keep shards ask."""

from __future__ import annotations

from cepheid.engine.ingest import InputError
from cepheid.engine.joiner import LimitError
from cepheid.language.problems import CepheidError

SAID = (CepheidError, InputError, LimitError)
"""Errors that say by themselves what is wrong with a query or its events. Where they come from is of no interest."""
