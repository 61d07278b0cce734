"""Profiles: written as real trace files, read back like any other, the same for the same seed."""

import hashlib

import numpy as np
import pytest

from dataplane.errors import InputError
from tests.traffic_profiles.program_play import ProgramPlay, check_pairs
from traffic_profiles.binding import bind
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra import read_traces
from traffic_profiles.compilation import CompileOptions, compile_workload
from traffic_profiles.profiles import PROFILES, generate
from traffic_profiles.profiles.llama2_model import MODELS


def compiled(directory, name, ranks=8, **options):
    profile = generate(name, directory, ranks=ranks, **options)
    workload = bind(read_traces(directory), source=directory, options=BindingOptions())
    return compile_workload(workload, CompileOptions(algorithms=profile.algorithms))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("ranks", [4, 8])
def test_every_profile_reads_back_compiles_and_runs_to_completion(tmp_path, name, ranks):
    job = compiled(tmp_path, name, ranks)
    check_pairs(job.programs)
    assert ProgramPlay(job.programs).run().complete_sets
    assert sum(job.report.sent_bytes.values()) > 0


@pytest.mark.parametrize("name", PROFILES)
def test_equal_seeds_give_equal_bytes(tmp_path, name):
    digests = []
    for turn in ("a", "b"):
        generate(name, tmp_path / turn, ranks=4, seed=3)
        files = sorted((tmp_path / turn).iterdir())
        digests.append([hashlib.sha256(file.read_bytes()).digest() for file in files])
    assert digests[0] == digests[1]


def test_moe_training_runs_all_reduces_beside_all_to_alls(tmp_path):
    """Layers below issue their all-to-alls without waiting for the gradients of those above."""
    job = compiled(tmp_path, "moe-training")
    kinds = job.instances["kind"].value_counts(sort=True).rows()
    assert dict(kinds) == {"all_to_all": 16, "all_reduce": 4}
    play = ProgramPlay(job.programs)
    gradients = job.instances.filter(label="layer 3 dense gradients")["instance"].item()
    reached = instances_reached_without(play, gradients)
    below = job.instances.filter(label="layer 0 dispatch backward")["instance"].item()
    assert below in reached


def instances_reached_without(play: ProgramPlay, held: int) -> set[int]:
    """Instances that complete while one of them never starts."""
    start = play.start
    play.start = lambda op: None if play.programs[op[0]].instance[op[1]] == held else start(op)
    play.run()
    return {int(play.programs[rank].instance[op]) for rank, op in play.finished}


def test_moe_training_splits_tokens_unevenly_and_brings_them_back(tmp_path):
    """What an expert's rank gets in the dispatch is what it sends in the combine."""
    job = compiled(tmp_path, "moe-training")
    ids = {
        part: job.instances.filter(label=f"layer 1 {part} forward")["instance"].item()
        for part in ("dispatch", "combine")
    }
    there, back = (traffic(job, ids[part]) for part in ("dispatch", "combine"))
    assert np.abs(there - back.T).max() <= 2
    columns = there.sum(axis=0)
    assert columns.max() > 1.2 * columns.min()
    even = compiled(tmp_path / "even", "moe-training", skew=0)
    assert len(np.unique(traffic(even, ids["dispatch"]))) == 2


def traffic(job, instance: int) -> np.ndarray:
    """Bytes from each rank to each other in one instance."""
    matrix = np.zeros((len(job.programs), len(job.programs)), np.int64)
    for program in job.programs:
        sends = np.flatnonzero((program.instance == instance) & (program.kind == 0))
        np.add.at(matrix[program.rank], program.peer[sends], program.size_bytes[sends].astype(int))
    return matrix


def test_moe_training_takes_4_to_8_ms_on_400_gigabit_nics(tmp_path):
    """A lower bound: the bytes of the busiest NIC at 50 GB/s, compute on one stream beside."""
    job = compiled(tmp_path, "moe-training")
    network_ms = max(job.report.sent_bytes.values()) / 50e9 * 1e3
    compute_ms = max(int(p.duration_ps.sum()) for p in job.programs) / 1e9
    assert 3 < network_ms < 5
    assert network_ms + compute_ms < 8


def test_an_incast_sends_everything_to_rank_0(tmp_path):
    job = compiled(tmp_path, "incast", size_bytes=1000, repeats=3)
    assert job.report.received_bytes == {0: 7 * 3 * 1000} | dict.fromkeys(range(1, 8), 0)


def test_a_permutation_sends_and_receives_once_per_rank_and_never_to_itself(tmp_path):
    job = compiled(tmp_path, "permutation", size_bytes=1000, repeats=2)
    assert set(job.report.sent_bytes.values()) == {2000}
    assert set(job.report.received_bytes.values()) == {2000}
    assert all(set(p.peer[p.kind < 2]).isdisjoint({p.rank}) for p in job.programs)


@pytest.mark.parametrize(("model", "billions"), [(7, 6.738), (13, 13.016), (70, 68.977)])
def test_llama_2_has_the_published_number_of_parameters(model, billions):
    """Of the released checkpoints, with embedding, output and the last norm."""
    one = MODELS[model]
    parameters = one.layers * one.layer_parameters + 2 * one.embedding_parameters + one.hidden
    assert round(parameters / 1e9, 3) == billions


def test_llama_2_sends_what_its_parallelisms_ask_for(tmp_path):
    """8 ranks: 2 parts, 2 stages, 2 replicas; 4 sequences are 2 micro-batches of a replica."""
    job = compiled(tmp_path, "llama2-step", batch_sequences=4)
    kinds = dict(job.instances.group_by("kind").len().rows())
    model = MODELS[7]
    assert kinds == {
        "send_recv": 2 * 2 * 2 * 2,  # forward and backward, micro-batches, replicas, parts
        "reduce_scatter": 32 * 2,  # layers, parts
        "all_gather": 32 * 2,
    }
    boundary = 4096 * 4096 * 2 // 2
    shards = model.layers * model.layer_parameters + 2 * model.embedding_parameters
    # Of each replica's bytes one half stays where it is: reduced there, and gathered from there.
    by_data = 2 * (2 * shards // 2)
    sent = sum(job.report.sent_bytes.values())
    assert sent == 16 * boundary + 2 * by_data


def test_llama_2_s_tensor_parallelism_can_cross_the_network(tmp_path):
    job = compiled(tmp_path, "llama2-step", batch_sequences=4, scale_up_gigabytes_per_s=0)
    reduced = job.instances.filter(kind="all_reduce")
    # 32 layers, 2 micro-batches, forward and backward twice each, 2 replicas.
    assert len(reduced) == 32 * 2 * 4 * 2
    assert reduced["size_bytes"].unique().to_list() == [4096 * 4096 * 2]


@pytest.mark.parametrize(
    ("name", "ranks", "given", "what"),
    [
        ("moe", 8, {}, "there is no profile 'moe'; one of moe-training"),
        ("incast", 1, {}, "1 ranks; give at least 2"),
        ("incast", 8, {"size": 1}, "size: no such parameter; one of size_bytes"),
        ("incast", 8, {"repeats": 0}, "0 is out of range; give int of at least 1"),
        ("incast", 8, {"repeats": "x"}, "'x' is not a number of type int"),
        ("moe-training", 8, {"skew": "inf"}, "inf is out of range"),
        ("llama-step", 6, {}, "6 ranks do not make groups of 4"),
        ("llama2-step", 6, {}, "6 ranks are no multiple of 4"),
        ("llama2-step", 8, {"model": 8}, "8 is no size of Llama 2"),
        ("llama2-step", 48, {"pipeline_parallel": 3}, "3 does not divide 32 layers"),
        ("llama2-step", 64, {"model": 70, "tensor_parallel": 16}, "16 does not divide 8 key-value"),
        ("llama2-step", 8, {"batch_sequences": 3}, "3 is no multiple of 2"),
    ],
)
def test_wrong_parameters_are_refused(tmp_path, name, ranks, given, what):
    with pytest.raises(InputError, match=what):
        generate(name, tmp_path, ranks=ranks, **given)
