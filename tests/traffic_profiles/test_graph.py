"""The graph of one rank: ids to rows, and what is wrong with it."""

import numpy as np

from tests.traffic_profiles.trace_job import edges
from traffic_profiles.chakra import NodeType, TraceNode, read_trace, write_trace
from traffic_profiles.graph import rank_graph


def graph_of(tmp_path, *nodes):
    """The graph of nodes given as (id, data_deps)."""
    path = tmp_path / "x.0.et"
    made = [TraceNode(node, f"n{node}", NodeType.COMP, data_deps=deps) for node, deps in nodes]
    write_trace(path, made)
    return rank_graph(read_trace(path, 0))


def test_rows_are_ordered_by_dependencies_not_by_place_in_the_file(tmp_path):
    """A node may stand before its parent."""
    graph = graph_of(tmp_path, (5, [9]), (9, []))
    assert graph.order.tolist() == [1, 0]


def test_dangling_and_repeated_dependencies_are_dropped_and_counted(tmp_path):
    """Pruned parents and doubled entries are common in real traces."""
    graph = graph_of(tmp_path, (1, []), (2, [1, 1, 99]))
    assert (graph.dangling, graph.duplicate_dependencies, len(graph.edges)) == (1, 1, 1)


def test_a_dependency_on_a_doubled_id_means_the_first_node(tmp_path):
    """Both nodes stay; the double is counted."""
    graph = graph_of(tmp_path, (1, []), (1, []), (2, [1]))
    assert graph.duplicate_ids == 1
    assert (graph.edges.parent.tolist(), graph.edges.child.tolist()) == ([0], [2])


def test_a_cycle_is_told_with_ids_and_names(tmp_path):
    """Nodes that merely hang on the cycle are not in the message."""
    problem = graph_of(tmp_path, (1, []), (2, [1, 4]), (3, [2]), (4, [3]), (5, [4]))
    assert "a cycle of 3" in problem.what
    assert "2 'n2' waits for 4 'n4' waits for 3 'n3'" in problem.what
    assert "n5" not in problem.what


def test_a_node_that_depends_on_itself_is_refused(tmp_path):
    """The smallest cycle."""
    assert "node 2 'n2' depends on itself" in graph_of(tmp_path, (1, []), (2, [2])).what


def test_control_dependencies_count_only_without_any_data_dependency(tmp_path):
    """Otherwise they are the call stack, whose parents end after their children begin."""
    path = tmp_path / "x.0.et"
    only_control = [
        TraceNode(1, "a", NodeType.COMP),
        TraceNode(2, "b", NodeType.COMP, ctrl_deps=[1]),
    ]
    write_trace(path, only_control)
    graph = rank_graph(read_trace(path, 0))
    assert (graph.uses_ctrl_deps, len(graph.edges)) == (True, 1)
    write_trace(path, [*only_control, TraceNode(3, "c", NodeType.COMP, data_deps=[1])])
    graph = rank_graph(read_trace(path, 0))
    assert (graph.uses_ctrl_deps, graph.edges.child.tolist()) == (False, [2])


def test_a_long_chain_in_reverse_needs_no_recursion(tmp_path):
    """Depth is no limit."""
    count = 50_000
    graph = graph_of(tmp_path, *((node, [node + 1]) for node in range(count)))
    assert np.array_equal(graph.order, np.arange(count)[::-1])


def test_strict_binding_refuses_dangling_dependencies(job):
    """`--strict` turns the count into an error."""
    made = job(1)
    made.ranks[0].compute("a", 1, after=[77])
    assert made.bind().report.counts["dangling_dependencies_dropped"] == 1
    assert "not in the file: 1 (first: rank 0 row 0 node 1 'a' on node 77)" in made.refusal(
        strict=True
    )
    assert edges(made.bind(), 0) == set()
