//! Trace files: an error, or columns that fit each other.

use _native::trace::{Columns, read_bytes};

/// Larger than any input, so that only decompression comes to it.
const LIMIT_BYTES: u64 = 1 << 20;

/// Reads a trace file, plain or gzip.
pub fn read(bytes: &[u8]) {
    match read_bytes(bytes, "fuzz", Some(LIMIT_BYTES)) {
        Ok(columns) => check(&columns),
        Err(error) => {
            assert!(!error.what.is_empty() && !error.remedy.is_empty());
            assert!(error.offset <= LIMIT_BYTES);
        }
    }
}

fn check(columns: &Columns) {
    let rows = columns.id.len();
    check_lengths(columns, rows);
    check_offsets(&columns.name_offsets, rows, columns.name_bytes.len());
    check_offsets(&columns.data_dep_offsets, rows, columns.data_deps.len());
    check_offsets(&columns.ctrl_dep_offsets, rows, columns.ctrl_deps.len());
    let groups = -1..columns.groups.len() as i32;
    assert!(columns.group.iter().all(|group| groups.contains(group)));
    assert!(columns.is_cpu_op.iter().all(|flag| (-1..=1).contains(flag)));
    assert!(columns.frame_offsets.is_sorted());
    assert!(columns.frame_offsets.last().is_none_or(|last| *last < LIMIT_BYTES));
    assert!(columns.rows_in_some_dimensions.is_sorted());
    assert!(columns.rows_in_some_dimensions.last().is_none_or(|last| *last < rows as u64));
}

fn check_lengths(columns: &Columns, rows: usize) {
    macro_rules! check {
        ($($column:ident)*) => { $(assert_eq!(columns.$column.len(), rows);)* };
    }
    check!(node_type duration_us start_us is_cpu_op stream tid ts_us comm_type comm_size comm_src);
    check!(comm_dst comm_tag group num_ops tensor_size frame_offsets);
}

fn check_offsets(offsets: &[u64], rows: usize, items: usize) {
    assert_eq!(offsets.len(), rows + 1);
    assert!(offsets[0] == 0 && offsets.is_sorted());
    assert_eq!(offsets[rows], items as u64);
}
