"""What the drawing says in words: tiers, rates, shares, and the description for screen readers."""

import re
from collections import Counter
from collections.abc import Sequence

from metrics.drawing.layout import Box, Bundle, Layout
from metrics.drawing.network import Link, Network, Utilisation
from metrics.presentation import rate_text, share_text

__all__ = [
    "bundle_text",
    "counted",
    "description",
    "link_label",
    "ranks_text",
    "shares_text",
    "tier_links_text",
    "tier_text",
]


def tier_text(network: Network, row: Sequence[Box]) -> str:
    """`8 leaves` where the names agree, else `8 switches`."""
    nodes = [node for box in row for node in box.nodes]
    stems = {re.sub(r"[-_.]?[0-9]+$", "", network.name(node)) for node in nodes}
    stem = stems.pop() if len(stems) == 1 else ""
    return counted(len(nodes), stem if stem.isalpha() and len(stem) > 2 else "switch")


def counted(number: int, word: str) -> str:
    """`1 link`, `2 links`, `3 switches`."""
    if number == 1:
        return f"1 {word}"
    return f"{number} {word[:-1]}ves" if word == "leaf" else f"{number} {word}{_ending(word)}"


def _ending(word: str) -> str:
    return "es" if word.endswith(("ch", "s", "x")) else "s"


def tier_links_text(links: Sequence[Link]) -> list[str]:
    """How many links of which rate and delay, the most first, a line each."""
    kinds = Counter((link.rate_bps, link.delay_ps) for link in links)
    lines = [
        f"{counted(count, 'link')}, {rate_text(rate)}, {delay / 1000:g} ns"
        for (rate, delay), count in kinds.most_common(3)
    ]
    return lines + ([f"and {len(kinds) - 3} other kinds"] if len(kinds) > 3 else [])


def link_label(bundle: Bundle) -> str:
    """`2 × 400 Gb/s`."""
    rates = Counter(link.rate_bps for link, _ in bundle.links)
    return " + ".join(
        f"{count} \u00d7 {rate_text(rate)}" if count > 1 else rate_text(rate)
        for rate, count in sorted(rates.items(), reverse=True)
    )


def shares_text(shares: tuple[float, float] | None, first: str, second: str) -> str:
    """Utilisation of both directions."""
    if shares is None:
        return ""
    texts = (share_text(shares[0]), share_text(shares[1]))
    return f"; {first} to {second} {texts[0]}, back {texts[1]}"


def bundle_text(bundle: Bundle, shares: tuple[float, float] | None) -> str:
    """A bundle in one phrase."""
    ends = (bundle.a.label, bundle.b.label)
    return f"{ends[0]} \u2013 {ends[1]}: {link_label(bundle)}{shares_text(shares, *ends)}"


def ranks_text(network: Network, nics: Sequence[int]) -> str:
    """`ranks 0-15`, `ranks 0-24 by 8`, or how many there are."""
    ranks = sorted(network.nics[nic].rank for nic in nics)
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    step = ranks[1] - ranks[0]
    if ranks != list(range(ranks[0], ranks[-1] + 1, step or 1)):
        return f"{len(ranks)} ranks"
    text = f"ranks {ranks[0]}\u2013{ranks[-1]}"
    return text if step == 1 else f"{text} by {step}"


def description(network: Network, layout: Layout, utilisation: Utilisation | None) -> str:
    """The picture for those who can't see it."""
    sentences = []
    for tier, row in reversed(list(enumerate(layout.rows))):
        if tier and row:
            sentences.append(f"Tier {tier}: {tier_text(network, row)}.")
    sentences.append(f"Below them {counted(len(network.nics), 'NIC')}.")
    sentences += [f"{line}." for line in tier_links_text(network.links)]
    if utilisation:
        (name, direction), share = max(utilisation.items(), key=lambda item: item[1])
        link = next(link for link in network.links if link.name == name)
        ends = (link.a, link.b) if direction == 0 else (link.b, link.a)
        busiest = " to ".join(network.name(end) for end in ends)
        sentences.append(f"Busiest on average: {busiest}, {share_text(share)}.")
    return " ".join(sentences)
