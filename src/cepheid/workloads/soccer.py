"""Soccer positions: players and a ball, tracked many times a second."""

from __future__ import annotations

import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.workloads.arguments import local_start, whole
from cepheid.workloads.columns import SECOND, moments, words
from cepheid.workloads.rates import Floats

PITCH = np.array([105.0, 68.0])
"""Length and width in metres. The home team plays towards larger x."""
TOP_SPEED = 7.0
"""Of a player, in metres per second."""
PRESSING = 3
"""How many players go for an opponent who has the ball."""


def soccer_positions(
    count: int,
    *,
    seed: int = 0,
    players: int = 11,
    hertz: int = 25,
    start: datetime.datetime = datetime.datetime(2024, 5, 18, 15, 30),
) -> pa.Table:
    """A stream of positions in a soccer match: ts, type, player, team, x, y, speed, acceleration.

    The type is ``Ball``, or a player: ``H1`` to ``H11`` at home, ``A1`` to ``A11`` away; 1 is the goalkeeper, the last
    two are the strikers. Each is reported ``hertz`` times a second, at a moment of its own. A ``Possession`` event says
    that ``player`` has won the ball, at this place. ``players`` is the number in each team.

    x from 0 to 105 and y from 0 to 68 are in metres; the home team plays towards larger x. speed is in m/s,
    acceleration, in m/s², its change. The ball has no player and no team. No two events have the same time.

    >>> from cepheid.workloads import soccer_positions
    >>> positions = soccer_positions(1000)
    >>> positions.column_names
    ['ts', 'type', 'player', 'team', 'x', 'y', 'speed', 'acceleration']
    >>> positions["type"].slice(0, 4).to_pylist()
    ['Possession', 'Ball', 'H1', 'H2']
    """
    whole("count", count)
    whole("players", players, 4, 50)
    whole("hertz", hertz, 1, 1000)
    local_start(start)
    rng = np.random.default_rng(seed)
    objects = 1 + 2 * players
    frames = 1 + count // objects
    ground, holders = _play(rng, players, 4 + frames // hertz)
    where = _frames(ground, holders, frames + 2, hertz)
    speed = np.hypot(*np.moveaxis(np.diff(where, axis=0), 2, 0)) * hertz
    acceleration = np.diff(speed, axis=0) * hertz
    where, speed = where[2:], speed[1:]

    holder = holders[np.arange(frames) // hertz + 1]
    won = np.flatnonzero(np.diff(holder, prepend=-1))
    # A frame has a slot for the possession, one for the ball and one for each player, in this order.
    slots = objects + 1
    frame = np.concatenate([np.repeat(np.arange(frames), objects), won])
    thing = np.concatenate([np.tile(np.arange(objects), frames), 1 + holder[won]])
    slot = np.concatenate([np.tile(np.arange(1, slots), frames), np.zeros(len(won), np.int64)])
    order = np.argsort(frame * slots + slot, kind="stable")[:count]
    frame, thing, slot = frame[order], thing[order], slot[order]
    people = [f"{team}{number}" for team in "HA" for number in range(1, players + 1)]
    return pa.table(
        {
            "ts": moments(start, frame * SECOND // hertz + slot * (SECOND // (hertz * slots))),
            "type": words(["Possession", "Ball", *people], np.where(slot == 0, 0, 1 + thing)),
            "player": words([None, *people], thing),
            "team": words([None, *["home"] * players, *["away"] * players], thing),
            "x": pa.array(np.round(where[frame, thing, 0], 2)),
            "y": pa.array(np.round(where[frame, thing, 1], 2)),
            "speed": pa.array(np.round(speed[frame, thing], 2)),
            "acceleration": pa.array(np.round(acceleration[frame, thing], 2)),
        }
    )


def _formation(players: int) -> Floats:
    """Where the players of the home team stand when the ball is in the middle."""
    strikers = 2
    defenders = (players - 1 - strikers + 1) // 2
    lines = [(6.0, 1), (30.0, defenders), (48.0, players - 1 - strikers - defenders), (62.0, strikers)]
    return np.array([(x, 68 * (place + 0.5) / size) for x, size in lines for place in range(size)])


def _play(rng: np.random.Generator, players: int, seconds: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Where all players are, and who has the ball, at the start of each second."""
    home = _formation(players)
    base = np.concatenate([home, PITCH - home])
    forward = np.repeat([1.0, -1.0], players)
    # The goalkeepers hardly follow the ball.
    follow = np.where(np.arange(2 * players) % players == 0, 0.08, 0.45)[:, None]
    here, wander, velocity = base.copy(), np.zeros_like(base), np.zeros_like(base)
    places = np.empty((seconds, 2 * players, 2))
    holders = np.empty(seconds, np.int64)
    holder = players - 1
    everyone = np.arange(2 * players)
    for second in range(seconds):
        places[second], holders[second] = here, holder
        ball = here[holder]
        far = np.hypot(*(here - ball).T)
        mine = everyone // players == holder // players
        opponents = np.flatnonzero(~mine)
        pressing = opponents[np.argsort(far[opponents])[:PRESSING]]
        wander = 0.95 * wander + rng.normal(0, 0.7, base.shape)
        target = base + follow * (ball - PITCH / 2) + wander
        target[pressing] = ball + wander[pressing] / 2
        target[holder] = ball + np.array([12 * forward[holder], wander[holder, 1]])
        velocity = 0.5 * velocity + 0.15 * (target - here)
        velocity *= np.minimum(1, 0.9 * TOP_SPEED / np.maximum(np.hypot(*velocity.T), 1e-9))[:, None]
        here = np.clip(here + velocity, 0.5, PITCH - 0.5)
        goal = PITCH[0] if forward[holder] > 0 else 0.0
        action, fate = rng.random(2)
        if abs(goal - ball[0]) < 20 and action < 0.3:
            holder = players * (1 - holder // players)  # a shot, which the goalkeeper holds
        elif action < 0.4:
            mates = np.flatnonzero(mine & (everyone != holder))
            mates = mates[np.argsort(far[mates])[:5]]
            liked = np.cumsum(np.exp(-far[mates] / 15 + forward[holder] * (here[mates, 0] - ball[0]) / 30))
            holder = int(mates[np.searchsorted(liked[:-1], fate * liked[-1])])
        elif action > 0.93:
            holder = int(pressing[0])
    return places, holders


def _frames(ground: Floats, holders: npt.NDArray[np.int64], frames: int, hertz: int) -> Floats:
    """Where the ball and all players are in each frame: smooth curves through the places of the seconds.

    The first two frames are the ones before the start of the second with number 1.
    """
    clock = 1 + (np.arange(frames) - 2) / hertz
    second = np.floor(clock).astype(np.int64)
    part = (clock - second)[:, None, None]
    before, a, b, after = (ground[np.clip(second + shift, 0, len(ground) - 1)] for shift in (-1, 0, 1, 2))
    # Catmull and Rom's spline: speeds do not jump.
    curve = a + 0.5 * part * (
        b - before + part * (2 * before - 5 * a + 4 * b - after + part * (3 * (a - b) + after - before))
    )
    rows = np.arange(frames)
    held, next_held = curve[rows, holders[second]], curve[rows, holders[second + 1]]
    ball = held + part[:, 0] * (next_held - held)
    everything: Floats = np.clip(np.concatenate([ball[:, None], curve], axis=1), 0, PITCH)
    return everything
