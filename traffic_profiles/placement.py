"""Which NIC carries which rank: in order, shuffled by a seed, or as listed."""

from collections.abc import Sequence
from random import Random

from dataplane.errors import InputError, Problem

__all__ = ["place"]


def place(
    ranks: Sequence[int],
    nics: Sequence[str],
    *,
    listed: Sequence[str] | None = None,
    shuffle_seed: int | None = None,
    source: str = "placement",
) -> dict[int, str]:
    """Give every rank a NIC of its own: rank `ranks[i]` has the i-th.

    `listed` names the NICs in rank order; else `shuffle_seed` permutes `nics`; else `nics` are
    taken as they come. Raises `InputError` with everything that is wrong; `source` names the input.
    """
    order = list(nics if listed is None else listed)
    problems = [] if listed is None else list(listing_problems(order, nics, source))
    if len(order) < len(ranks):
        what = f"{len(ranks)} ranks but {len(order)} NICs"
        remedy = f"give at least {len(ranks)} NICs, or traces of at most {len(order)} ranks"
        problems.append(Problem(source, what, remedy))
    if problems:
        raise InputError(*problems)
    if listed is None and shuffle_seed is not None:
        Random(shuffle_seed).shuffle(order)  # noqa: S311
    return dict(zip(ranks, order, strict=False))


def listing_problems(listed: Sequence[str], nics: Sequence[str], source: str) -> list[Problem]:
    """Find names that are no NIC, and names that stand twice."""
    problems = []
    for index, name in enumerate(listed):
        place_ = f"entry {index}"
        if name not in nics:
            what = f"there is no NIC '{name}'"
            problems.append(Problem(source, what, f"one of {', '.join(nics)}", place=place_))
        elif name in listed[:index]:
            what = f"NIC '{name}' already carries rank {listed.index(name)}"
            problems.append(Problem(source, what, "name every NIC once", place=place_))
    return problems
