"""The engine's document has every default resolved: from presets, formulas and the lab."""

import json
from typing import Any

import pytest

import dataplane
from emulator.job_config import job_config
from emulator.lab import list_labs, load
from emulator.presets import DCQCN_PRESETS, NOTIFICATION_PRESETS, dcqcn_preset


def config(lab: str, *overrides: str, seed: int = 1) -> dict[str, Any]:
    loaded = load(lab, overrides)
    document = job_config(loaded.lab, loaded.fabric, seed=seed)
    result: dict[str, Any] = json.loads(json.dumps(document))
    return result


@pytest.mark.parametrize("name", sorted(list_labs()))
def test_no_value_is_missing_where_the_engine_needs_one(name: str) -> None:
    document = config(name)
    optional = {
        "ecn",
        "xoff_bytes",
        "adaptive_retransmission",
        "pfc_watchdog",
        "headroom_pool_bytes",
    }

    def walk(value: Any, key: str) -> None:
        if isinstance(value, dict):
            for inner, entry in value.items():
                walk(entry, inner)
        elif isinstance(value, list):
            for entry in value:
                walk(entry, key)
        else:
            assert value is not None or key in optional, key

    walk(document, "")


def test_messages_may_be_split_over_queue_pairs_and_wait_for_their_receivers() -> None:
    plain = config("loopback-clos")["transport"]
    assert (plain["qp_distribution"], plain["clear_to_send"]) == ("round_robin", False)
    overrides = "transport.qp_distribution=split", "transport.clear_to_send=true"
    changed = config("loopback-clos", *overrides)["transport"]
    assert (changed["qp_distribution"], changed["clear_to_send"]) == ("split", True)


@pytest.mark.parametrize("name", sorted(list_labs()))
def test_the_engine_takes_the_document_of_every_shipped_lab(name: str) -> None:
    loaded = load(name)
    document = job_config(loaded.lab, loaded.fabric, seed=1)
    assert dataplane.Emulation(json.dumps(document), []).is_done


def test_headroom_is_what_the_link_holds_until_the_pause_acts() -> None:
    """2 x 600 ns x 400 Gb/s / 8 + 2 x 4178 + 64 + 3840 = 72,260 B. Source: IEEE 802.1Q annex N."""
    overrides = "pfc.headroom_allowance_bytes=0", "switches.buffer_bytes=16777216"
    leaf = config("loopback-clos", *overrides)["switches"][0]
    assert leaf["priorities"][3]["headroom_bytes"] == 72_260
    assert leaf["buffer_bytes"] == 16_777_216 - 8 * 72_260
    assert leaf["priorities"][0]["headroom_bytes"] == 0


def test_data_is_lossless_and_marked_and_notifications_are_strict() -> None:
    document = config("loopback-clos")
    priorities = document["switches"][0]["priorities"]
    assert [item["lossless"] for item in priorities] == [index == 3 for index in range(8)]
    assert [item["strict"] for item in priorities] == [index == 6 for index in range(8)]
    assert priorities[3]["ecn"] == {
        "kmin_bytes": 800_000,
        "kmax_bytes": 3_200_000,
        "pmax_ratio": 0.2,
        "drops_not_ect": False,
    }
    assert all(item["ecn"] is None for index, item in enumerate(priorities) if index != 3)


def test_every_switch_hashes_in_its_own_way_and_the_seed_changes_all() -> None:
    first = [item["ecmp_seed"] for item in config("clos-64")["switches"]]
    second = [item["ecmp_seed"] for item in config("clos-64", seed=2)["switches"]]
    assert len({*first, *second}) == len(first) + len(second)


def test_mlx5_names_and_units_mean_what_they_mean_there() -> None:
    """Source: NVIDIA 'DCQCN CC Parameters': Mb/s, us, 64 B, percent, 1/1024."""
    document = config(
        "single-switch",
        "dcqcn.rpg_ai_rate=20",
        "dcqcn.rpg_time_reset=100",
        "dcqcn.rpg_byte_reset=1000",
        "dcqcn.rpg_min_dec_fac=80",
        "dcqcn.dce_tcp_g=1020",
        "dcqcn.clamp_tgt_rate=1",
        "np.min_time_between_cnps=2",
    )
    control = document["congestion_control"]
    assert control["additive_increase_bps"] == 20_000_000
    assert control["rate_increase_period_ps"] == 100_000_000
    assert control["rate_increase_bytes"] == 64_000
    assert control["min_decrease_ratio"] == 0.8
    assert control["g"] == 4 / 1024
    assert control["clamp_target_rate"] == "always"
    assert document["notification_point"]["cnp_interval_ps"] == 2_000_000


def test_every_parameter_of_mlx5_s_table_has_a_meaning_here() -> None:
    document = config(
        "single-switch",
        "dcqcn.rpg_gd=12",
        "dcqcn.rpg_max_rate=200000",
        "np.cnp_dscp=46",
        "np.cnp_802p_prio=5",
    )
    control = document["congestion_control"]
    assert control["decrease_alpha_ratio"] == 0.25
    assert control["max_rate_bps"] == 200_000_000_000
    assert (document["classes"]["cnp_dscp"], document["classes"]["cnp_priority"]) == (46, 5)


def test_clamp_after_time_increase_off_leaves_only_the_byte_counter() -> None:
    control = config("single-switch", "dcqcn.clamp_tgt_rate_after_time_inc=0")["congestion_control"]
    assert control["clamp_target_rate"] == "after_byte_increase"


@pytest.mark.parametrize("preset", DCQCN_PRESETS)
def test_every_preset_has_every_value_with_a_source(preset: str) -> None:
    values = dcqcn_preset(preset, 400_000_000_000)
    assert set(values) == set(dcqcn_preset("paper", 1))
    assert all(item.source for item in (*values.values(), *NOTIFICATION_PRESETS[preset].values()))


def test_hpcc_steps_grow_with_the_line_rate() -> None:
    """Source: HPCC ns-3 run.py: 5 Mb/s and 50 Mb/s per 25 Gb/s."""
    control = config("single-switch", "dcqcn.preset=ns3-hpcc", "dcqcn.min_rate_bps=1000000000")
    assert control["congestion_control"]["additive_increase_bps"] == 80_000_000
    assert control["congestion_control"]["hyper_increase_bps"] == 800_000_000


def test_hpcc_thresholds_grow_with_the_port_rate() -> None:
    ecn = config("incast-8")["switches"][0]["priorities"][3]["ecn"]
    assert (ecn["kmin_bytes"], ecn["kmax_bytes"]) == (400_000, 1_600_000)


@pytest.mark.parametrize(
    "overrides",
    [
        ["congestion_control={algorithm: swift}"],
        ["congestion_control={algorithm: fixed_rate}"],
        ["switches.path_selection={mode: flowlet, gap_ns: 1000}"],
        ["switches.path_selection.mode=packet", "transport.loss_recovery=selective_repeat"],
        ["switches.path_selection.mode=shortest_queue"],
        ["transport.adaptive_retransmission={}"],
        ["pfc.watchdog={action: forward}"],
        ["dcqcn.preset=paper"],
        ["dcqcn.preset=ns3-hpcc"],
        ["dcqcn.preset=irdma"],
        ["np.enabled=false", "ecn.enabled=false", "pfc.enabled=false"],
    ],
)
def test_the_engine_takes_every_alternative(overrides: list[str]) -> None:
    loaded = load("loopback-clos", overrides)
    document = job_config(loaded.lab, loaded.fabric, seed=1)
    assert dataplane.Emulation(json.dumps(document), []).is_done


def test_a_fixed_rate_takes_no_dcqcn_values() -> None:
    document = config("single-switch", "congestion_control={algorithm: fixed_rate, rate_gbps: 50}")
    assert document["congestion_control"] == {
        "algorithm": "fixed_rate",
        "rate_bps": 50_000_000_000,
    }


def test_without_pfc_nothing_is_lossless_and_no_headroom_is_reserved() -> None:
    overrides = "pfc.enabled=false", "switches.buffer_bytes=16777216"
    switch = config("single-switch", *overrides)["switches"][0]
    assert not any(item["lossless"] for item in switch["priorities"])
    assert switch["buffer_bytes"] == 16_777_216


def test_an_impairment_names_directions_of_links() -> None:
    loaded = load("loopback-clos")
    names = [link.name for link in loaded.fabric.links]
    rule = f"impairments=[{{links: '{names[1]}', direction: b_to_a, delay_ns: 5}}]"
    (document,) = config("loopback-clos", rule)["impairments"]
    assert document["directions"] == [3]
    assert document["delay_ps"] == 5_000
    assert document["reordering_ps"] == 10_000_000


def test_an_impairment_names_opcodes_as_the_specification_does() -> None:
    rule = "impairments=[{opcodes: [RC_RDMA_READ_REQUEST, CNP], loss_ratio: 0.1}]"
    assert config("single-switch", rule)["impairments"][0]["opcodes"] == [0x0C, 0x81]
