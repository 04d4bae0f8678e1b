"""What nodes and a coordinator in different processes tell each other: JSON, in which doubles keep every digit."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from cepheid.monitor.kernels import Floats
from cepheid.monitor.model import Model, Settings


@dataclass(frozen=True)
class Report:
    """A node's sums. ``number`` counts its reports: one that comes twice is known by it."""

    node: str
    number: int
    sum_a: Floats
    sum_c: Floats

    def to_json(self) -> str:
        sums = {"a": self.sum_a.tolist(), "c": self.sum_c.tolist()}
        return json.dumps({"node": self.node, "number": self.number} | sums)

    @classmethod
    def from_json(cls, text: str) -> Report | None:
        """None for the empty message that is written to a topic so that it is there."""
        found = json.loads(text)
        if "node" not in found:
            return None
        return cls(found["node"], found["number"], np.array(found["a"]), np.array(found["c"]))


@dataclass(frozen=True)
class Order:
    """To all nodes: a new model; or, without one, how many observations to wait before reporting again.

    ``number`` counts the orders: nodes follow a later one than they know, and no other.
    """

    number: int
    model: Model | None
    budget: float = 0.0
    wait: int = 0

    def to_json(self) -> str:
        if self.model is None:
            return json.dumps({"number": self.number, "wait": self.wait})
        model = {"beta": self.model.beta.tolist(), "inverse": self.model.inverse.tolist()}
        return json.dumps({"number": self.number, "budget": self.budget, "whole": self.model.budget} | model)

    @classmethod
    def from_json(cls, text: str, settings: Settings) -> Order | None:
        found = json.loads(text)
        if "number" not in found:
            return None
        if "wait" in found:
            return cls(found["number"], None, wait=found["wait"])
        model = Model(settings, np.array(found["beta"]), np.array(found["inverse"]), found["whole"])
        return cls(found["number"], model, found["budget"])


EMPTY = "{}"
