//! Order and cycles of large dependency graphs.
//!
//! A graph is given as parents in compressed rows: the parents of vertex `i` are
//! `parents[offsets[i]..offsets[i + 1]]`. Nothing here recurses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parents of every vertex, checked: offsets ascend and end at the parents' count, and every
/// parent is a vertex.
#[derive(Clone, Copy, Debug)]
pub struct Parents<'a> {
    offsets: &'a [u64],
    parents: &'a [u32],
}

impl<'a> Parents<'a> {
    /// A graph of `offsets.len() - 1` vertices; None when the arrays do not fit each other.
    pub fn new(offsets: &'a [u64], parents: &'a [u32]) -> Option<Self> {
        let vertices = offsets.len().checked_sub(1)?;
        let fits = offsets[0] == 0
            && offsets[vertices] == parents.len() as u64
            && offsets.windows(2).all(|pair| pair[0] <= pair[1])
            && u32::try_from(vertices).is_ok()
            && parents.iter().all(|parent| (*parent as usize) < vertices);
        fits.then_some(Self { offsets, parents })
    }

    /// Count of vertices.
    pub fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Parents of a vertex.
    pub fn of(&self, vertex: usize) -> &'a [u32] {
        &self.parents[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// The same edges the other way: offsets and children.
    fn children(&self) -> (Vec<u64>, Vec<u32>) {
        let mut offsets = vec![0u64; self.vertices() + 1];
        for parent in self.parents {
            offsets[*parent as usize + 1] += 1;
        }
        for index in 1..offsets.len() {
            offsets[index] += offsets[index - 1];
        }
        let mut next = offsets.clone();
        let mut children = vec![0u32; self.parents.len()];
        for vertex in 0..self.vertices() {
            for parent in self.of(vertex) {
                let slot = &mut next[*parent as usize];
                children[*slot as usize] = vertex as u32;
                *slot += 1;
            }
        }
        (offsets, children)
    }

    /// Vertices in topological order; among those whose parents are all done the smallest key
    /// comes first, then the smallest index. A vertex's key is at least its parents'.
    ///
    /// Vertices on a cycle or behind one are left out.
    pub fn topological_order(&self, keys: &[i64]) -> Vec<u32> {
        let (offsets, children) = self.children();
        let mut missing: Vec<u32> = (0..self.vertices()).map(|v| self.of(v).len() as u32).collect();
        let mut effective_keys = keys.to_vec();
        let mut ready: BinaryHeap<Reverse<(i64, u32)>> = (0..self.vertices())
            .filter(|vertex| missing[*vertex] == 0)
            .map(|vertex| Reverse((keys[vertex], vertex as u32)))
            .collect();
        let mut order = Vec::with_capacity(self.vertices());
        while let Some(Reverse((key, vertex))) = ready.pop() {
            order.push(vertex);
            let vertex = vertex as usize;
            for child in &children[offsets[vertex] as usize..offsets[vertex + 1] as usize] {
                let child = *child as usize;
                effective_keys[child] = effective_keys[child].max(key);
                missing[child] -= 1;
                if missing[child] == 0 {
                    ready.push(Reverse((effective_keys[child], child as u32)));
                }
            }
        }
        order
    }

    /// One cycle, as vertices each of which is a parent of the one before it; empty when there is
    /// none. `order` is what [`Self::topological_order`] gave.
    pub fn cycle(&self, order: &[u32]) -> Vec<u32> {
        let mut done = vec![false; self.vertices()];
        for vertex in order {
            done[*vertex as usize] = true;
        }
        let Some(start) = done.iter().position(|is_done| !is_done) else {
            return Vec::new();
        };
        // Every vertex that is not done has a parent that is not done: going back must repeat one.
        let mut position = vec![usize::MAX; self.vertices()];
        let mut path = Vec::new();
        let mut vertex = start;
        while position[vertex] == usize::MAX {
            position[vertex] = path.len();
            path.push(vertex as u32);
            match self.of(vertex).iter().find(|parent| !done[**parent as usize]) {
                Some(parent) => vertex = *parent as usize,
                None => return Vec::new(), // `order` is not of this graph
            }
        }
        path.split_off(position[vertex])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_key_among_the_ready_comes_first() {
        let graph = Parents::new(&[0, 0, 0, 1], &[0]).unwrap();
        assert_eq!(graph.topological_order(&[5, 7, 1]), [0, 2, 1]);
    }

    #[test]
    fn a_vertex_comes_no_earlier_than_its_latest_parent_suggests() {
        // 2 hangs on 1 (key 9); its own key of 0 must not put it before 3 (key 9).
        let graph = Parents::new(&[0, 0, 0, 1, 1], &[1]).unwrap();
        assert_eq!(graph.topological_order(&[1, 9, 0, 8]), [0, 3, 1, 2]);
    }

    #[test]
    fn a_cycle_is_found_behind_vertices_that_merely_hang_on_it() {
        // 0 <- 1 <- 2 <- 1, 3 <- 2
        let graph = Parents::new(&[0, 0, 2, 3, 4], &[0, 2, 1, 2]).unwrap();
        let order = graph.topological_order(&[0; 4]);
        assert_eq!(order, [0]);
        let mut cycle = graph.cycle(&order);
        cycle.sort_unstable();
        assert_eq!(cycle, [1, 2]);
    }

    #[test]
    fn a_vertex_that_waits_for_itself_is_a_cycle() {
        let graph = Parents::new(&[0, 1], &[0]).unwrap();
        assert_eq!(graph.cycle(&graph.topological_order(&[0])), [0]);
    }

    #[test]
    fn arrays_that_do_not_fit_are_no_graph() {
        assert!(Parents::new(&[], &[]).is_none());
        assert!(Parents::new(&[0, 1], &[1]).is_none());
        assert!(Parents::new(&[0, 2], &[0]).is_none());
    }
}
