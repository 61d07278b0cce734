//! The columns of a trace: one row for each node, in the order of the file.

use super::attribute::Attributes;
use super::metadata::Metadata;
use super::sniff::Dialect;
use std::collections::HashMap;

/// A whole trace. An absent attribute is -1.
///
/// All columns have one element for each node, except that offsets have one more: the items of
/// row `i` are `offsets[i]..offsets[i + 1]`.
#[derive(Debug)]
#[allow(missing_docs)] // the columns are named after the fields and attributes that fill them
pub struct Columns {
    pub id: Vec<u64>,
    pub node_type: Vec<u8>,
    pub name_offsets: Vec<u64>,
    pub name_bytes: Vec<u8>,
    pub data_dep_offsets: Vec<u64>,
    pub data_deps: Vec<u64>,
    pub ctrl_dep_offsets: Vec<u64>,
    pub ctrl_deps: Vec<u64>,
    pub duration_us: Vec<u64>,
    pub start_us: Vec<u64>,
    pub is_cpu_op: Vec<i8>,
    pub stream: Vec<i64>,
    pub tid: Vec<i64>,
    pub ts_us: Vec<i64>,
    pub comm_type: Vec<i8>,
    pub comm_size: Vec<i64>,
    pub comm_src: Vec<i64>,
    pub comm_dst: Vec<i64>,
    pub comm_tag: Vec<i64>,
    /// Index into `groups`.
    pub group: Vec<i32>,
    pub num_ops: Vec<i64>,
    pub tensor_size: Vec<i64>,
    /// Offset of each node's length prefix in the decompressed file.
    pub frame_offsets: Vec<u64>,
    /// Rows of collectives whose `involved_dim` leaves out dimensions of the topology.
    pub rows_in_some_dimensions: Vec<u64>,
    /// Names of process groups, in order of first occurrence.
    pub groups: Vec<String>,
    pub(super) group_indices: HashMap<String, i32>,
    pub metadata: Metadata,
    /// `inputs.values` of the node that lists the process groups.
    pub process_groups_json: Option<String>,
    /// What the file was found to be.
    pub dialect: Dialect,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            id: Vec::new(),
            node_type: Vec::new(),
            name_offsets: vec![0],
            name_bytes: Vec::new(),
            data_dep_offsets: vec![0],
            data_deps: Vec::new(),
            ctrl_dep_offsets: vec![0],
            ctrl_deps: Vec::new(),
            duration_us: Vec::new(),
            start_us: Vec::new(),
            is_cpu_op: Vec::new(),
            stream: Vec::new(),
            tid: Vec::new(),
            ts_us: Vec::new(),
            comm_type: Vec::new(),
            comm_size: Vec::new(),
            comm_src: Vec::new(),
            comm_dst: Vec::new(),
            comm_tag: Vec::new(),
            group: Vec::new(),
            num_ops: Vec::new(),
            tensor_size: Vec::new(),
            frame_offsets: Vec::new(),
            rows_in_some_dimensions: Vec::new(),
            groups: Vec::new(),
            group_indices: HashMap::new(),
            metadata: Metadata::default(),
            process_groups_json: None,
            dialect: Dialect::default(),
        }
    }
}

impl Columns {
    /// Append the attributes of one node.
    #[inline]
    pub(super) fn push_attributes(&mut self, attributes: &Attributes<'_>) {
        self.is_cpu_op.push(attributes.is_cpu_op);
        self.stream.push(attributes.stream);
        self.tid.push(attributes.tid);
        self.ts_us.push(attributes.ts_us);
        self.comm_type.push(attributes.comm_type);
        self.comm_size.push(attributes.comm_size);
        self.comm_src.push(attributes.comm_src);
        self.comm_dst.push(attributes.comm_dst);
        self.comm_tag.push(attributes.comm_tag);
        self.num_ops.push(attributes.num_ops);
        self.tensor_size.push(attributes.tensor_size);
        let group = attributes.group.as_ref().map_or(-1, |name| self.group_index(name));
        self.group.push(group);
    }

    /// Index of a process group, which is added when it is new.
    fn group_index(&mut self, name: &str) -> i32 {
        if let Some(index) = self.group_indices.get(name) {
            return *index;
        }
        let index = self.groups.len() as i32;
        self.groups.push(name.to_owned());
        self.group_indices.insert(name.to_owned(), index);
        index
    }

    /// Give back what the columns reserved but do not use.
    pub(super) fn shrink(&mut self) {
        macro_rules! shrink {
            ($($column:ident)*) => { $(self.$column.shrink_to_fit();)* };
        }
        shrink!(id node_type name_offsets name_bytes data_dep_offsets data_deps);
        shrink!(ctrl_dep_offsets ctrl_deps duration_us start_us is_cpu_op stream tid ts_us);
        shrink!(comm_type comm_size comm_src comm_dst comm_tag group num_ops tensor_size);
        shrink!(frame_offsets);
    }
}
