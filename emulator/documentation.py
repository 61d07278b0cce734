"""Writes docs/labs.md and docs/sweeps.md from the models, so that they can't fall behind.

`python -m emulator.documentation` writes; a test compares.
"""

from pathlib import Path

from emulator.documentation_tables import (
    LINE_RATE_BPS,
    dcqcn_tables,
    ecn_table,
    joined,
    key_sections,
    mlx5_table,
    switch_tables,
    table,
    traps_table,
)
from emulator.exchange.binding import Binding
from emulator.job_config import job_config
from emulator.lab import Lab, list_labs, load
from emulator.lab.overrides import SHORT_NAMES
from emulator.sweep.spec import SweepSpec
from metrics.drawing import draw_network

__all__ = ["lab_drawing", "labs_page", "main", "sweeps_page"]

_DOCS = Path(__file__).parents[1] / "docs"
_DRAWN_LAB = "clos-64"


def main() -> None:
    """Write both pages and the drawing."""
    (_DOCS / "labs.md").write_text(labs_page(), encoding="utf-8")
    (_DOCS / "sweeps.md").write_text(sweeps_page(), encoding="utf-8")
    (_DOCS / "images" / "lab.svg").write_text(lab_drawing(), encoding="utf-8")


def labs_page() -> str:
    """The text of docs/labs.md."""
    return joined(
        "# Lab files",
        "Written by `python -m emulator.documentation`; a test checks that it is current.",
        _LABS_INTRODUCTION,
        _TOPOLOGIES,
        "## Labs that come with rankwire",
        table(("Lab", "What it is"), [(f"`{n}`", load(n).lab.description) for n in list_labs()]),
        "## Keys",
        _KEYS_INTRODUCTION,
        *key_sections(Lab, ()),
        _CLASSES,
        "## Presets of the reaction point",
        f"`congestion_control.preset`, for NICs of {LINE_RATE_BPS / 1e9:g} Gb/s. Each value can "
        "be overridden beside the preset.",
        *dcqcn_tables(),
        "### Where implementations differ",
        "Every point on which published implementations of DCQCN disagree is an option. These are "
        "the points, the keys, and what each preset has.",
        traps_table(),
        "## mlx5 names",
        "Accepted as they are in the lab file and after `--set`, in their own units.",
        mlx5_table(),
        "## ECN presets",
        f"`switches.ecn.preset`, for ports of {LINE_RATE_BPS / 1e9:g} Gb/s.",
        ecn_table(),
        "## Switch presets",
        "`switches.preset`: a kind of switch whose settings hold where the lab file gives none. "
        "Reservations of queues and priority groups are modelled, minima of whole ports and the "
        "rounding to cells are not.",
        *switch_tables(),
        _LABS_END,
        _REFUSED,
        _EXCHANGE,
        *key_sections(Binding, ("binding",)),
    )


def lab_drawing() -> str:
    """The text of docs/images/lab.svg."""
    loaded = load(_DRAWN_LAB)
    config = job_config(loaded.lab, loaded.fabric, seed=1)
    return draw_network(config, title=_DRAWN_LAB)


def sweeps_page() -> str:
    """The text of docs/sweeps.md."""
    return joined(
        "# Sweeps",
        "Written by `python -m emulator.documentation`; a test checks that it is current.",
        _SWEEPS_INTRODUCTION,
        "## Keys",
        *key_sections(SweepSpec, ()),
        _SWEEPS_END,
    )


_LABS_INTRODUCTION = """\
A lab file says what stands in the lab and which settings hold: topology, switches, traffic
classes, transport, congestion control, agents. It is YAML; unknown keys are errors, and all
problems are told at once with their lines. The smallest one:

```yaml
name: small
topology:
  kind: clos
  leaves: 1
  spines: 0
  hosts_per_leaf: 8
  host_link: {rate_gbps: 400}
```

* `rankwire lab check FILE` validates it, `rankwire lab show FILE` prints every effective value with
  its source, `rankwire doctor FILE` says what will go wrong although it is valid.
* `rankwire lab show LAB --svg FILE` draws it, `rankwire lab paths LAB FROM TO` lists, or with
  `--svg` draws, the equal-cost paths between two ranks.
* `rankwire lab up FILE` builds it of Linux network namespaces, with real routing and queues (root;
  [namespaces](namespaces.md)).
* `rankwire lab schema > lab.schema.json` is for completion in an editor.
* `--set PATH=VALUE` changes one key for one command; `rankwire lab keys` lists the paths.

![The lab clos-64: four spines, eight leaves, eight hosts on each](images/lab.svg)

The report of a run or a prediction has the same picture with every link in the colour of its mean
utilisation."""

_TOPOLOGIES = """\
## Topologies

`kind: clos` is a Clos of two or three tiers from its own numbers, `kind: fat_tree` the smallest
Clos of equal switches that carries so many hosts, `kind: explicit` any graph. What decides which:

| What | In a Clos | In a fat tree |
| --- | --- | --- |
| hosts | `leaves` x `pods` x `hosts_per_leaf` / `nics_per_host` | `hosts` |
| NICs per host | `nics_per_host` | `nics_per_host` |
| ports of a switch | follow from the rest | `radix` |
| oversubscription | `hosts_per_leaf` over `spines` x `fabric_link.parallel` | `oversubscription` |
| a switch per rail | `wiring: rails` | `wiring: rails` |
| rates of the tiers | `rate_gbps` of `host_link`, `fabric_link`, `core_link` | the same |
| lengths of cables | `cable_metres` of the same; 5 ns per metre on top of `delay_ns` | the same |

```yaml
topology:
  kind: fat_tree
  hosts: 64
  nics_per_host: 8
  wiring: rails
  radix: 64
  oversubscription: 2
  host_link: {rate_gbps: 400, delay_ns: 400, cable_metres: 3}
  fabric_link: {rate_gbps: 800, delay_ns: 400, cable_metres: 50}
```"""

_KEYS_INTRODUCTION = (
    "Units are in the names. In `--set`, "
    + ", ".join(f"`{short}.` stands for `{'.'.join(map(str, path))}.`"
                for short, path in SHORT_NAMES.items())
    + "."
)  # fmt: skip

_CLASSES = """\
## Classes of data packets

All messages are of one class of data packets unless `traffic_classes.further` names more. Each
class has a DSCP, a priority and, if it names one, a congestion control of its own: another
algorithm, another preset, or other values, in our names or mlx5's. What names none has the lab's.

```yaml
congestion_control: {algorithm: dcqcn, preset: mlx5}      # every class that names none
traffic_classes:
  data: {dscp: 26, priority: 3}
  further:
    - name: experts
      collective: all_to_all                               # or group, node, sizes
      dscp: 30
      priority: 4
      congestion_control: {algorithm: swift, base_target_delay_ns: 20_000}
    - name: latency
      max_size_bytes: 65_536
      dscp: 34
      priority: 5
      congestion_control: {algorithm: dcqcn, preset: paper, rpg_min_rate: 1000}
```

The first class that matches takes a collective or message; the rest is of class `data`. Priorities
of all classes mark and are lossless unless `switches.ecn.priorities` and `switches.pfc.priorities`
say otherwise, and each lossless priority takes headroom from the buffer. The notification point is
the NIC's and one for all classes. `rankwire lab show` prints each class's resolved values with
their sources, `run.json` keeps them under `settings`, the report has a chart of sender rates for
each class, and `collectives.parquet` and `qps.parquet` a column `traffic_class`."""

_LABS_END = """\
## Link events

```yaml
events:
  - {links: "leaf0-spine0*", change: down, at_ns: 200_000}
  - {links: host3-leaf0, change: flap, at_ns: 500_000, down_ns: 50_000, repeat: 3}
  - {links: "leaf1-*", change: rate, rate_gbps: 100, at_collective: {kind: all_reduce, index: 2}}
  - links: leaf0-spine1*
    change: down
    at_node: {rank: 0, node: 17, moment: end}
    after_ns: 10_000
```

* What is on a link that goes down, and in the queues before it, is lost; so is what switches send
  towards it until they know. It is counted by itself (`counters.link_losses` in `run.json`, by port
  `link_down_packets`), not among the drops. Frames that have reached a switch go on.
* No pause of priority flow control outlives the link. An ingress that is still above its
  threshold when the link comes back pauses its neighbour anew.
* After `switches.rerouting.detection_ns` the switches at the link spread their flows over the
  equal-cost ports that are left, and `convergence_ns` later the others leave the ways that lead
  there. A flap that is over before that is not noticed. No switch takes a way of more hops.
* A NIC whose only link is down keeps its data and waits; its peers send again until their retries
  are used up (`transport.retransmission_timeout_ns`, `retry_count`), and fail after that. When
  nothing can go on, the command ends with who waits for whom and which link is down.
* A change of rate holds for the frames that begin after it. Thresholds, headrooms and the rates at
  which congestion control is capped stay those of the topology.
* Every agent changes its ends of a link at the same emulated time. With `at_ns` it is as given. The
  moments `at_node` and `at_collective` are known where the rank is carried, at that instant; in a
  prediction and in a `run` with one agent (the default) they count from there. With several agents
  the others have to be told first: the first change then comes `control.event_notice_ms` of wall
  time, divided by `time_dilation`, after the moment, or at `after_ns` if that is longer. An event
  with a long enough `after_ns` has the same time in such a run as in its prediction.
  `run.json` says under
  `control.event_orders` what moment was seen by whom and from when changes were counted, and under
  `link_event_ends` when they took effect at each end; an order that came too late is a warning.
* `run.json` lists what happened under `link_events`; the report marks it in the charts over time,
  and says for each link how long it was down and what was lost.

## Headroom

Left out, the headroom of a port and lossless priority is computed for the longest, fastest link of
the switch: `2 x delay x rate / 8 + 2 x (MTU + 82) + 64 + response_bytes + allowance`. The shared
buffer is `buffer_bytes` without the headrooms of all ports.

`headroom_pool_bytes`, or `headroom_oversubscription`, lets all of them share a pool instead: the
shared buffer is `buffer_bytes` without the pool, each ingress may still take its own headroom, and
when the pool is full packets of a lossless priority are dropped (`headroom_dropped_packets`), as in
a switch whose pool is too small.

## Reservations

`switches.pfc.reserved_bytes` are kept for every port and lossless priority of arrival (the `size`
of a SONiC priority group's profile), `switches.queue_reserved_bytes` for every egress queue of a
lossy priority; `switches.queues` says it for single priorities. A packet takes from the reservation
while that has room for it, then from the shared buffer: thresholds, dynamic or fixed, count what is
held beyond the reservation, and a buffer that others have filled still takes what is reserved. What
leaves frees headroom first, then shared buffer, then the reservation. The shared buffer is
`buffer_bytes` without headrooms and without the reservations of all ports that have a link; where
these do not fit, `lab check` says how much each of them needs.

## Early drops

Switches mark only packets that are ECN-capable: data of a class with `ecn_capable`. What a profile
does about others differs between switches: most leave them alone, and with
`switches.ecn.drops_not_ect`, for single priorities in `switches.queues`, it drops them with the
probability of a mark. It is decided when a packet comes, on the queue that it finds, by a number
that follows from the packet, as for marks, and from how many of its queue pair were dropped before:
one that is sent again has another chance. They are counted as `wred_dropped_packets` in the series
of queues, in the counters of ports, among the warnings and in Prometheus."""

_REFUSED = """\
## What is refused, and what is not

A lab that is no network ends every command with exit status 2 and one message for each problem:
hosts without a link, ranks that no path leads to, links whose ends and own rate are unequal, ports
used twice (which is also what a link given twice is told), nodes linked to themselves, NICs linked
to each other unless they are the only two, and buffers smaller than their headrooms. Any other
graph is a network. Rings, meshes and tori are fine: packets take shortest paths only, which can't
loop, and several links between two nodes share their flows. Whether pauses can wait for each other
in a circle there, `rankwire doctor` says."""

_EXCHANGE = """\
## Other tools' topology files

`rankwire lab import FILE [--binding FILE] --out LAB.yaml` makes a lab with an explicit topology
from a containerlab topology (`*.clab.yml`) or an InfraGraph infrastructure (YAML or JSON), and
`rankwire lab export LAB --format containerlab|infragraph --out FILE [--binding FILE]` goes back.
What a format can't say is in a binding file; an export writes one, and exported file and binding
together make the same lab again, down to names, ranks, addresses and ports.

| | containerlab | InfraGraph |
| --- | --- | --- |
| Hosts | nodes of kind `linux`, `host`, `ext-container`, `k8s-kind`, `keysight_ixia-c-one` | \
instances of devices with an `xpu` or `nic` within, at any depth |
| Switches | all other nodes, bridges too | all other instances that an edge is on |
| NICs | interfaces of hosts that a link is on | components of hosts that an edge is on |
| Ranks | nodes as in the file, interfaces by name | instances, then components, as in the file |
| Ports | interfaces by name, numbered from 0, names kept | the component's index |
| Rates | the binding, else `rate_gbps` in `vars` of the link | the binding, else the `bandwidth` |
| Delays | the binding, else `delay_ns` in `vars` | the binding, else the `latency` |
| Left out, and said | links to `host`, `mgmt-net`, `macvlan`, tunnels and `dummy`; \
nodes without a link | instances without an edge |

containerlab's `defaults`, `kinds`, `groups` and nodes inherit as there, links are read in the short
and the extended form. InfraGraph's edges pair their slices as its own service does: `one2one` in
order until one side ends, `many2many` each with each. A small binding:

```yaml
roles:                       # a router that runs on Linux, a collector that is no part of it
  - {nodes: "frr*", role: switch}
  - {nodes: prometheus, role: ignored}
nics:
  - {at: "gpu1:eth1", rank: 0, address: 198.18.0.1}
switches:
  - {at: leaf1, ports: 34, management_address: 172.20.20.21}
links:                       # the first that fits holds
  - {between: ["gpu*", "leaf*"], rate_gbps: 400, cable_metres: 3}
  - {between: ["leaf*", "spine*"], rate_gbps: 800, cable_metres: 50}
lab:
  time_dilation: 4000
```

InfraGraph's annotations say ranks and addresses too: `lab export --annotations FILE` writes them
for its `annotate_graph` (`rank` of every `xpu`, `ipaddress` of every `nic`), and the nodes of such
a file are `annotations` of a binding.

The exported containerlab file keeps to containerlab's own schema and rules. Where management
addresses are outside of its usual 172.20.20.0/24, the file has a `mgmt` network that holds them;
names in their place go into the binding. It is for a rehearsal of cabling and control plane;
`--switch-kind`, `--switch-image` and `--host-image` say what its nodes run.

### `binding`

The binding file; names and globs are those of the topology file."""

_SWEEPS_INTRODUCTION = """\
`rankwire sweep SPEC` runs or predicts one job under every combination of a grid of settings, and
ranks them by one figure. Every point has a directory of its own with the records of a run, named
by a digest of everything that decides its result; a sweep that is started again with the same
`--out` runs only what is missing.

```yaml
name: marking
lab: loopback-clos
grid:
  ecn.kmin_bytes: [200_000, 800_000]
  dcqcn.rpg_ai_rate: [5, 50]
seeds: [1, 2]
rank_by: all_reduce.p99_ns
```"""

_SWEEPS_END = """\
## Figures

`KIND.FIGURE`: KIND is a kind of collective, `all` or `flows`; FIGURE is `p50_ns`, `p95_ns`,
`p99_ns`, `max_ns`, `mean_ns` or `count` of the completion time, `algbw_GBps`, `busbw_GBps` or
`ideal_ratio` (medians), and for flows `slowdown_p99`. Of a whole run: `emulated_ns`,
`marked_packets`, `cnps`, `retransmitted_packets`, `dropped_packets`, `pause_frames`,
`paused_ns` (all queues together), `max_queue_bytes`,
and of its links, idle ones included: `link_utilisation_ratio`, the mean share of
time that frames occupied a line; `link_idle_ratio`, the share of the samples' time in which nothing
did; `link_max_over_mean`, the bytes of the busiest link between switches over the mean of them;
`ecmp_max_over_mean`, the same of each set of equal-cost ports, averaged by their bytes.
`KIND.variation` is the standard deviation of the completion times over their mean,
`KIND.straggler_ratio` the slowest of the kind's messages over their median. Of `algbw_GBps`,
`busbw_GBps` and `ideal_ratio` more is better, of all others less.

## Expectations

`expect` names what the points are to show: a figure of one point, or its ratio `over` that of
another, between `at_least` and `at_most`. It holds when it holds on every seed; where one does not,
the sweep's exit status is 1. `published` and `remark` are for people. The sweeps of
`lab_configs/published` are written so (`docs/published.md`).

```yaml
expect:
  - that: a quarter of the bandwidth takes about four times as long
    figure: all_to_all.p50_ns
    where: {topology.host_link.rate_gbps: 100}
    over: {where: {topology.host_link.rate_gbps: 400}}
    at_least: 3.6
    at_most: 4.4
```

## Results

`sweep.parquet` has one row per point with every figure, `sweep.json` the ranked table with the
settings that were impossible, `sweep.html` a heat map or parallel coordinates. The table shows the
mean over the seeds, the spread (highest less lowest), and on how many seeds a setting is worse than
the first: a seed decides the traffic, so points of one seed are compared. A sweep warns when its
order means little: a quantile of fewer samples than it needs, one seed only, settings that are not
worse than the first on every seed; and a sweep of real runs when the machine was too slow for the
time dilation."""

if __name__ == "__main__":
    main()
