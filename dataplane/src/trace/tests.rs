//! Whole files through [`decode`](super::decode).

use super::error::Fault;
use super::*;
use proptest::prelude::*;

/// A message with its length prefix.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut length = message.len();
    while length >= 0x80 {
        file.push(length as u8 | 0x80);
        length >>= 7;
    }
    file.push(length as u8);
    file.extend_from_slice(message);
    file
}

/// A length-delimited field with a number below 16.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut message = vec![number << 3 | 2];
    message.extend(framed(content));
    message
}

/// An attribute: its name and the encoded value field.
fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    field(10, &[field(1, name.as_bytes()), value.to_vec()].concat())
}

fn metadata() -> Vec<u8> {
    framed(&field(1, b"0.0.4"))
}

fn node(id: u8, rest: &[u8]) -> Vec<u8> {
    framed(&[&[0x08, id][..], rest].concat())
}

fn read_bytes(bytes: &[u8]) -> Result<Columns, Fault> {
    decode(bytes, u64::MAX)
}

#[test]
fn a_file_without_metadata_loses_no_node() {
    let file = [node(1, &[0x18, 4]), node(2, &[0x2a, 1, 1])].concat();
    let columns = read_bytes(&file).unwrap();
    assert_eq!(columns.id, [1, 2]);
    assert_eq!(columns.node_type, [4, 0]);
    assert_eq!(columns.data_deps, [1]);
    assert_eq!(columns.data_dep_offsets, [0, 0, 1]);
    assert_eq!(columns.dialect.to_string(), "v0.0.4 without metadata");
}

#[test]
fn zero_length_messages_are_an_empty_metadata_and_an_all_default_node() {
    let file = [framed(&[]), framed(&[]), node(7, &[])].concat();
    let columns = read_bytes(&file).unwrap();
    assert_eq!(columns.id, [0, 7]);
    assert_eq!(columns.frame_offsets, [1, 2]);
}

#[test]
fn a_number_is_read_through_any_alternative() {
    let size_of = |value: &[u8]| {
        let file = [metadata(), node(1, &attribute("comm_size", value))].concat();
        read_bytes(&file).unwrap().comm_size[0]
    };
    assert_eq!(size_of(&[9 << 3, 42]), 42); // int64
    assert_eq!(size_of(&[13 << 3, 42]), 42); // uint64
    assert_eq!(size_of(&[0x88, 1, 84]), 42); // sint64, zigzag
    assert_eq!(size_of(&[0xa9, 1, 42, 0, 0, 0, 0, 0, 0, 0]), 42); // fixed64
    let double = [&[3 << 3 | 1][..], &42f64.to_le_bytes()].concat();
    assert_eq!(size_of(&double), 42);
    assert_eq!(size_of(&[9 << 3, 0x80, 0x80, 0x80, 0x80, 0x10]), 1 << 32);
    assert_eq!(size_of(&[]), -1); // an attribute without a value
}

#[test]
fn a_group_is_named_by_text_or_number() {
    let named = attribute("pg_name", &[0xea, 1, 2, b'4', b'2']);
    let numbered = attribute("comm_group", &[7 << 3, 3]);
    let file =
        [metadata(), node(1, &named), node(2, &numbered), node(3, &named), node(4, &[])].concat();
    let columns = read_bytes(&file).unwrap();
    assert_eq!(columns.groups, ["42", "3"]);
    assert_eq!(columns.group, [0, 1, 0, -1]);
}

#[test]
fn unknown_fields_types_and_attributes_are_passed_over() {
    let storage = field(11, &[0x08, 1]);
    let rest = [&[0x18, 9][..], &storage, &attribute("any", &[0x8a, 2, 1, 0])].concat();
    let columns = read_bytes(&[metadata(), node(1, &rest)].concat()).unwrap();
    assert_eq!(columns.node_type, [9]);
}

#[test]
fn the_inputs_of_the_process_group_node_are_kept() {
    let rest = [field(2, b"## process_group:init ##"), field(8, &field(1, b"['[]']"))].concat();
    let columns = read_bytes(&[metadata(), node(1, &rest)].concat()).unwrap();
    assert_eq!(columns.process_groups_json.as_deref(), Some("['[]']"));
}

#[test]
fn a_cut_file_is_an_error_that_says_where_its_last_message_begins() {
    let whole = [metadata(), node(1, &[0x18, 4]), node(2, &[0x18, 4])].concat();
    let last = whole.len() - 5;
    for cut in last + 1..whole.len() {
        let fault = read_bytes(&whole[..cut]).unwrap_err();
        assert_eq!(fault.offset, last as u64, "{}", fault.what);
        assert!(fault.what.contains("truncated"));
    }
}

#[test]
fn a_message_that_announces_gigabytes_allocates_none() {
    let file = [&metadata()[..], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0; 16]].concat();
    assert!(read_bytes(&file).unwrap_err().what.contains("announces 2147483647 bytes, 16"));
}

#[test]
fn messages_larger_than_the_window_are_read() {
    let name = vec![b'n'; 1 << 20];
    let file = [metadata(), node(1, &field(2, &name)), node(2, &[])].concat();
    let columns = read_bytes(&file).unwrap();
    assert_eq!(columns.name_offsets, [0, 1 << 20, 1 << 20]);
}

#[test]
fn older_dialects_are_named() {
    let runtime_and_communicator = [0x18, 6, 0x78, 1];
    let fault = read_bytes(&node(1, &runtime_and_communicator)).unwrap_err();
    assert!(fault.what.contains("v0.0.1"), "{}", fault.what);

    let typed = field(11, &[field(1, b"comm_size"), vec![0x10, 1, 0x28, 5]].concat());
    let fault = read_bytes(&node(1, &[field(10, b"[]"), typed].concat())).unwrap_err();
    assert!(fault.what.contains("v0.0.2 or v0.0.3"), "{}", fault.what);
}

#[test]
fn json_is_named_and_not_decoded() {
    let fault = read_bytes(b"{\n  \"workload_graph\": []}").unwrap_err();
    assert!(fault.what.contains("workload_graph"));
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    assert!(decode(&metadata()[..], 3).unwrap_err().what.contains("larger"));
}

proptest! {
    /// Whatever the bytes are, reading them ends in columns that fit each other or in an error.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        if let Ok(columns) = read_bytes(&bytes) {
            prop_assert_eq!(columns.id.len(), columns.group.len());
        }
    }

    /// A valid file with some bytes changed never panics either.
    #[test]
    fn damaged_files_never_panic(
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let rest = [
            field(2, b"kernel"),
            vec![0x18, 7, 0x2a, 2, 1, 2],
            attribute("comm_size", &[9 << 3, 42]),
            attribute("pg_name", &[0xea, 1, 1, b'1']),
        ]
        .concat();
        let mut file = [metadata(), node(1, &rest), node(2, &rest)].concat();
        for (index, byte) in damage {
            let at = index.index(file.len());
            file[at] = byte;
        }
        if let Ok(columns) = read_bytes(&file) {
            prop_assert_eq!(columns.data_dep_offsets.len(), columns.id.len() + 1);
        }
    }
}
