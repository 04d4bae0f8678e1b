"""A bank's events: logins, confirmations, transfers and card payments, and accounts that are robbed."""

from __future__ import annotations

import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.workloads.arguments import local_start, positive, whole, within
from cepheid.workloads.columns import SECOND, apart, moments, words
from cepheid.workloads.rates import Floats

TYPES = ("Login", "Confirm", "Transfer", "Payment")
COUNTRIES = ("DE", "FR", "IT", "ES", "PL", "NL", "RO", "BE", "CZ", "PT", "SE", "GR")
PEOPLE = np.array([84, 68, 59, 48, 37, 18, 19, 12, 11, 10, 10, 10]) / 386
"""The share of the accounts that live in each country."""
MERCHANTS = ("grocer", "fuel", "restaurant", "online", "pharmacy", "travel", "electronics", "jeweller")
CUSTOMERS = np.array([0.34, 0.14, 0.18, 0.16, 0.08, 0.05, 0.04, 0.01])
"""The share of the payments that each merchant has."""
TYPICAL = np.array([28.0, 55, 32, 40, 15, 180, 220, 600])
"""The median of the payments that each merchant has."""
HOURS = np.array([2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 10, 11, 10, 9, 9, 10, 11, 11, 9, 7, 6, 4, 3]) / 11
"""How busy each hour of the day is, relative to the busiest."""
SLOT = 1500 * SECOND
"""An account has at most one session in a slot, and its sessions start within a quarter of one: so what happens in a
session is never within ten minutes of the login of another, and only robbed accounts look robbed."""

Integers = npt.NDArray[np.int64]


def card_payments(
    count: int,
    *,
    seed: int = 0,
    accounts: int | None = None,
    fraud: float = 0.001,
    daily: float = 20.0,
    start: datetime.datetime = datetime.datetime(2024, 5, 17, 8, 0),
) -> pa.Table:
    """A stream of a bank's events: ts, type, account, home, country, amount, merchant.

    The types are ``Login``, ``Confirm``, ``Transfer`` and ``Payment``. ``home`` is the country that the account's owner
    lives in, ``country`` the one that the event comes from. Transfers and payments have an amount, payments a merchant.
    ``accounts``: how many there are, numbered from 0; if not given, one for every six events. Some are used much more
    than others. ``daily``: events of an account in a day on average; this decides how long the stream is.

    ``fraud``: the share of the accounts that are robbed once (if above 0, at least one): a login from another country,
    which nobody confirms, and within ten minutes four transfers, each larger than the one before. Owners who log in
    on a journey confirm it before they transfer anything, or give up. No two events have the same time.

    >>> from cepheid.workloads import card_payments
    >>> events = card_payments(1000)
    >>> events.column_names
    ['ts', 'type', 'account', 'home', 'country', 'amount', 'merchant']
    >>> sorted(events["type"].unique().to_pylist())
    ['Confirm', 'Login', 'Payment', 'Transfer']
    """
    whole("count", count)
    within("fraud", fraud, 0, 1)
    positive("daily", daily)
    local_start(start)
    accounts = max(1, count // 6) if accounts is None else whole("accounts", accounts)
    rng = np.random.default_rng(seed)
    home = rng.choice(len(COUNTRIES), accounts, p=PEOPLE)
    activity = np.cumsum(rng.lognormal(0, 0.8, accounts))
    length = max(1, round(86_400 * SECOND * count / (accounts * daily) / SLOT))
    robbed = rng.choice(accounts, max(1, round(fraud * accounts)) if fraud else 0, replace=False)
    parts = [_sessions(rng, count, home, activity, length, robbed, start)]
    payments = max(0, count - len(parts[0][0]))
    parts.append(_payments(rng, payments, home, activity, length, start))
    times, kind, account, country, amount, merchant = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(times, kind="stable")[:count]
    return pa.table(
        {
            "ts": moments(start, apart(times[order])),
            "type": words(TYPES, kind[order]),
            "account": pa.array(account[order]),
            "home": words(COUNTRIES, home[account[order]]),
            "country": words(COUNTRIES, country[order]),
            "amount": pa.array(np.round(amount[order], 2), from_pandas=True),
            "merchant": words([*MERCHANTS, None], merchant[order]),
        }
    )


_Part = tuple[Integers, Integers, Integers, Integers, Floats, Integers]
"""Times, types, accounts, countries, amounts and merchants of some events."""


def _sessions(
    rng: np.random.Generator,
    count: int,
    home: Integers,
    activity: Floats,
    length: int,
    robbed: Integers,
    start: datetime.datetime,
) -> _Part:
    """What people do after they have logged in: about half of all events."""
    wanted = max(0, int(0.22 * (count - 5 * len(robbed))))
    usual = _accounts(rng, wanted, activity) * length + _slots(rng, wanted, length, start)
    thefts = robbed * length + _slots(rng, len(robbed), length, start)
    keys = np.concatenate([thefts, np.setdiff1d(usual, thefts)])
    account, slot = keys // length, keys % length
    number = len(keys)
    theft = np.arange(number) < len(robbed)
    login = slot * SLOT + rng.integers(0, SLOT // 2, len(home))[account] + rng.integers(0, SLOT // 4, number)

    away = theft | (rng.random(number) < 0.04)
    country = np.where(away, _elsewhere(rng, home[account]), home[account])
    confirmed = ~theft & (rng.random(number) < np.where(away, 0.9, 0.25))
    transfers = np.where(theft, 4, rng.choice(5, number, p=[0.3, 0.35, 0.2, 0.1, 0.05]))
    transfers[away & ~confirmed & ~theft] = 0
    first = rng.uniform(20, 200, number)
    growing = first[:, None] * np.cumprod(rng.uniform(1.3, 3.0, (number, 4)), axis=1)
    amounts = np.where(theft[:, None], growing, rng.lognormal(np.log(120), 1.0, (number, 4)))
    # People confirm within a minute, and the ten minutes of a session start at its login.
    moments_of = login[:, None] + np.sort(rng.integers(60 * SECOND, 570 * SECOND, (number, 4)), axis=1)
    which, turn = np.nonzero(np.arange(4) < transfers[:, None])
    yes = np.flatnonzero(confirmed)
    rows = np.concatenate([np.arange(number), yes, which])
    times = np.concatenate(
        [login, login[yes] + rng.integers(5 * SECOND, 50 * SECOND, len(yes)), moments_of[which, turn]]
    )
    kind = np.repeat([0, 1, 2], [number, len(yes), len(which)])
    amount = np.concatenate([np.full(number + len(yes), np.nan), amounts[which, turn]])
    return times, kind, account[rows], country[rows], amount, np.full(len(rows), len(MERCHANTS))


def _payments(
    rng: np.random.Generator, number: int, home: Integers, activity: Floats, length: int, start: datetime.datetime
) -> _Part:
    """What people pay by card."""
    account = _accounts(rng, number, activity)
    times = _slots(rng, number, length, start) * SLOT + rng.integers(0, SLOT, number)
    country = np.where(rng.random(number) < 0.03, _elsewhere(rng, home[account]), home[account])
    merchant = rng.choice(len(MERCHANTS), number, p=CUSTOMERS)
    amount = TYPICAL[merchant] * rng.lognormal(0, 0.6, number)
    return times, np.full(number, TYPES.index("Payment")), account, country, amount, merchant


def _accounts(rng: np.random.Generator, number: int, activity: Floats) -> Integers:
    """Accounts, each as often as its share of the activity, of which the running sum is given."""
    return np.searchsorted(activity[:-1], rng.random(number) * float(activity[-1]))


def _slots(rng: np.random.Generator, number: int, length: int, start: datetime.datetime) -> Integers:
    """Slots of the stream, more of them where the day is busy."""
    hours = (start.hour + start.minute / 60 + np.arange(length) * (SLOT / SECOND / 3600)) % 24
    busy = HOURS[hours.astype(np.int64)]
    slots: Integers = rng.choice(length, number, p=busy / busy.sum())
    return slots


def _elsewhere(rng: np.random.Generator, home: Integers) -> Integers:
    """Countries other than these."""
    return (home + rng.integers(1, len(COUNTRIES), len(home))) % len(COUNTRIES)
