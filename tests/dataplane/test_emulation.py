"""Jobs in virtual time through the Python interface."""

import json
import threading

import numpy as np
import pytest

import dataplane
from tests.dataplane.engine_jobs import DELAY, RECV, SEND, program, ring, star_config, virtual

NOT_DONE = 2**64 - 1


def test_a_ring_ends_with_every_operation_complete_and_every_byte_delivered():
    engine = virtual(star_config(4), ring(4, steps=6, size_bytes=100_000))
    assert engine.advance()
    snapshot = engine.snapshot()
    assert engine.is_done
    assert snapshot["ops_done"] == snapshot["ops_total"] == 4 * 6 * 2
    assert snapshot["bytes_delivered"] == 4 * 6 * 100_000
    records = engine.records()
    assert (records["ops"]["end_ps"] < NOT_DONE).all()
    nics = records["counters"]["nics"]
    sent = nics["data_payload_bytes_sent"] - nics["data_payload_bytes_retransmitted"]
    assert sent.sum() == nics["data_payload_bytes_received"].sum() == 4 * 6 * 100_000


def test_two_predictions_are_the_same_bit_for_bit():
    def records():
        engine = virtual(star_config(4), ring(4, steps=6, size_bytes=300_000))
        engine.advance()
        return engine.records()

    first, second = records(), records()
    for table in ("ops", "links", "queues", "qps"):
        for name, column in first[table].items():
            np.testing.assert_array_equal(column, second[table][name], err_msg=f"{table}.{name}")


def test_the_series_of_links_add_up_to_the_counters():
    engine = virtual(star_config(4), ring(4, steps=6, size_bytes=300_000))
    engine.advance()
    records, links = engine.records(), engine.snapshot()["links"]
    for name in ("tx_bytes", "tx_packets", "data_bytes", "busy_ps"):
        assert records["links"][name].sum() == links[name].sum()
    ports, nics = records["counters"]["switch_ports"], records["counters"]["nics"]
    assert ports["rx_bytes"].sum() == nics["tx_bytes"].sum()
    assert ports["tx_bytes"].sum() == nics["rx_bytes"].sum()


def test_no_link_is_busy_for_longer_than_a_sample_lasts():
    engine = virtual(star_config(8), ring(8, steps=8, size_bytes=1 << 20))
    engine.advance()
    links = engine.records()["links"]
    assert (links["busy_ps"] <= links["interval_ps"]).all()


def test_advancing_in_slices_changes_nothing():
    whole = virtual(star_config(4), ring(4, steps=6, size_bytes=100_000))
    whole.advance()
    sliced = virtual(star_config(4), ring(4, steps=6, size_bytes=100_000))
    while not sliced.advance(max_events=7):
        pass
    np.testing.assert_array_equal(
        whole.records()["ops"]["end_ps"], sliced.records()["ops"]["end_ps"]
    )


def test_time_stops_where_it_is_told_to():
    engine = virtual(star_config(4), ring(4, steps=6, size_bytes=1 << 20))
    assert not engine.advance(until_ps=5_000_000)
    assert engine.now_ps == 5_000_000
    assert 0 < engine.snapshot()["bytes_delivered"] < 4 * 6 << 20


def test_completions_are_told_once():
    engine = virtual(star_config(4), ring(4, steps=6, size_bytes=1 << 20))
    told = []
    is_over = False
    while not is_over:
        is_over = engine.advance(max_events=500)
        completed = engine.completed()
        told += zip(completed["rank"].tolist(), completed["op"].tolist(), strict=True)
    assert sorted(told) == [(rank, op) for rank in range(4) for op in range(12)]


def test_a_rank_that_computes_shows_its_peer_as_blocked():
    size = {"size_bytes": 4096}
    programs = [
        program(
            0,
            [
                {"kind": DELAY, "duration_ps": 10_000_000, "lane": 0},
                {"kind": SEND, "peer": 1, "peer_op": 0, "deps": [0], **size},
            ],
        ),
        program(1, [{"kind": RECV, "peer": 0, "peer_op": 1, **size}]),
    ]
    engine = virtual(star_config(2), programs)
    engine.advance(until_ps=1_000_000)
    blocked = {(entry["rank"], entry["kind"], entry["peer"]) for entry in engine.blocked(10)}
    assert blocked == {(0, "delay", 0), (1, "recv", 0)}
    assert engine.advance()
    ops = engine.records()["ops"]
    assert ops["end_ps"][0] == 10_000_000
    assert ops["start_ps"][2] == 0


def test_the_gil_is_free_while_events_are_handled():
    engine = virtual(star_config(8), ring(8, steps=50, size_bytes=1 << 20))
    thread = threading.Thread(target=engine.advance)
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
    thread.join()
    assert turns > 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config["links"].append(dict(config["links"][0])), "two links"),
        (lambda config: config["links"][0].update(rate_bps=0), "rate_bps must be above 0"),
        (lambda config: config["nics"][1].update(rank=0), "rank 0 has two NICs"),
        (lambda config: config["switches"][0]["routes"].pop(), "routes for 4 NICs"),
        (lambda config: config.pop("seed"), "missing field `seed`"),
        (lambda config: config.update(speed=1), "unknown field `speed`"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(change, message):
    config = star_config(4)
    change(config)
    with pytest.raises(dataplane.ConfigError, match=message):
        virtual(config, ring(4, steps=1, size_bytes=1))


def test_programs_that_do_not_match_are_refused():
    programs = ring(4, steps=1, size_bytes=1)
    with pytest.raises(dataplane.ConfigError, match="has no program"):
        virtual(star_config(4), programs[:3])
    with pytest.raises(dataplane.ConfigError, match="is not matched by"):
        virtual(star_config(4), [*programs[:3], ring(4, steps=1, size_bytes=2)[3]])


def test_a_document_that_is_no_configuration_is_refused():
    with pytest.raises(dataplane.ConfigError):
        dataplane.Emulation("{", [])
    with pytest.raises(dataplane.ConfigError):
        dataplane.Emulation(json.dumps([]), [])
