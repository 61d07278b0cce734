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
    decode(|| Ok(bytes), u64::MAX)
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
fn the_first_dialect_has_other_numbers_and_every_attribute_as_a_field() {
    let named = framed(&[&[0x08, 1][..], &field(2, b"first"), &[0x18, 3]].concat());
    let send = node(2, &[0x18, 4, 0x20, 1, 0x88, 1, 3, 0x90, 1, 99, 0x98, 1, 7]);
    // Nothing in the first node tells the dialect: the second one does.
    let columns = read_bytes(&[named, send].concat()).unwrap();
    assert_eq!(columns.dialect.to_string(), "v0.0.1");
    assert_eq!(columns.node_type, [4, 5]);
    assert_eq!(columns.data_deps, [1]);
    assert_eq!((columns.comm_dst[1], columns.comm_size[1], columns.comm_tag[1]), (3, 99, 7));
}

#[test]
fn collectives_of_the_first_dialect_take_todays_numbers() {
    let types = |number: u8| {
        let columns = read_bytes(&node(1, &[0x18, 6, 0x38, 0xdc, 0x0b, 0x68, number])).unwrap();
        (columns.node_type[0], columns.comm_type[0], columns.duration_us[0])
    };
    // 1500 ticks of a nanosecond; all-reduce, all-to-all, all-gather, reduce-scatter.
    assert_eq!([1, 2, 3, 4].map(types), [(7, 0, 2), (7, 6, 2), (7, 2, 2), (7, 7, 2)]);
}

#[test]
fn a_node_type_beyond_all_numbers_is_the_largest() {
    let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let rest = [&[0x18][..], &largest, &[0x78, 1]].concat();
    let columns = read_bytes(&node(1, &rest)).unwrap();
    assert_eq!((columns.dialect.to_string(), columns.node_type[0]), ("v0.0.1".to_owned(), 255));
}

#[test]
fn a_trace_in_memory_is_read_plain_or_gzip() {
    let file = [metadata(), node(1, &[0x18, 4])].concat();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &file).unwrap();
    for bytes in [&file, &encoder.finish().unwrap()] {
        assert_eq!(super::read_bytes(bytes, "memory", None).unwrap().id, [1]);
    }
    let error = super::read_bytes(&file, "memory", Some(3)).unwrap_err();
    assert_eq!(error.file, "memory");
}

/// A node of v0.0.2 or v0.0.3: its type and one typed attribute.
fn typed_node(node_type: u8, name: &str, kind: u8, value: &[u8]) -> Vec<u8> {
    let attribute = [&field(1, name.as_bytes())[..], &[0x10, kind], value].concat();
    node(1, &[&[0x18, node_type][..], &field(10, b"[]"), &field(11, &attribute)].concat())
}

#[test]
fn typed_attributes_are_told_apart_by_the_kind_of_value() {
    let read = |bytes: &[u8]| {
        let columns = read_bytes(bytes).unwrap();
        (columns.dialect.to_string(), columns.node_type[0], columns.comm_size[0])
    };
    let v2 = read(&typed_node(6, "comm_size", 1, &[0x28, 5]));
    assert_eq!(v2, ("v0.0.2".to_owned(), 7, 5));
    let v3 = read(&typed_node(7, "comm_size", 2, &[0x30, 5]));
    assert_eq!(v3, ("v0.0.3 without metadata".to_owned(), 7, 5));
    let v3_with_unsigned = read(&typed_node(7, "comm_size", 3, &[0x38, 5]));
    assert_eq!(v3_with_unsigned, v3);
}

#[test]
fn typed_attributes_give_duration_place_and_collective() {
    let duration = read_bytes(&typed_node(4, "runtime", 3, &[0x38, 9])).unwrap();
    assert_eq!(duration.duration_us, [9]);
    let place = read_bytes(&typed_node(4, "is_host_op", 0, &[0x20, 1])).unwrap();
    assert_eq!(place.is_cpu_op, [1]);
    let kind = read_bytes(&typed_node(7, "comm_type", 3, &[0x38, 4])).unwrap();
    assert_eq!(kind.comm_type, [5]); // broadcast
}

#[test]
fn metadata_with_typed_attributes_is_no_node() {
    let schema = [&field(1, b"schema")[..], &[0x10, 4], &field(8, b"1.0.1")].concat();
    let file = [framed(&field(1, &schema)), typed_node(7, "comm_size", 3, &[0x38, 5])].concat();
    let columns = read_bytes(&file).unwrap();
    assert_eq!((columns.dialect.to_string(), columns.id.len()), ("v0.0.3".to_owned(), 1));
}

#[test]
fn protobuf_json_is_one_document_after_the_other() {
    let file = br#"{"version": "0.0.4"}{"id": "5", "name": "a", "type": "COMM_COLL_NODE",
        "dataDeps": ["7"], "durationMicros": "3", "attr": [
        {"name": "comm_size", "int64Val": "4294967296"}, {"name": "comm_type", "int64Val": "6"},
        {"name": "is_cpu_op", "boolVal": false}, {"name": "pg_name", "stringVal": "1"}]}{}"#;
    let columns = read_bytes(file).unwrap();
    assert_eq!((columns.id[0], columns.node_type[0], columns.duration_us[0]), (5, 7, 3));
    assert_eq!((columns.comm_size[0], columns.comm_type[0]), (1 << 32, 6));
    assert_eq!((columns.is_cpu_op[0], &columns.groups[..]), (0, &["1".to_owned()][..]));
    assert_eq!(columns.data_deps, [7]);
}

#[test]
fn documents_with_a_list_of_nodes_are_read() {
    let feeder = br#"{"workload_graph": [{"Id": 2, "Name": "n", "NodeType": 4, "ctrlDeps": [3],
        "data_deps": [1], "runtime": 318, "is_cpu_op": true}]}"#;
    let columns = read_bytes(feeder).unwrap();
    assert_eq!((columns.duration_us[0], columns.is_cpu_op[0]), (318, 1));
    assert_eq!((&columns.data_deps[..], &columns.ctrl_deps[..]), (&[1][..], &[3][..]));
    let stage = br#"{"nodes": [{"id": 2, "name": "n", "node_type": "coll_comm_node",
        "comm_type": "ALL_TO_ALL", "comm_size": 8, "comm_group": 3}]}"#;
    let columns = read_bytes(stage).unwrap();
    assert_eq!((columns.node_type[0], columns.comm_type[0]), (7, 6));
    assert_eq!(columns.groups, ["3"]);
}

#[test]
fn damaged_json_says_where() {
    let fault = read_bytes(b"{\"workload_graph\": [{]}").unwrap_err();
    assert!(fault.what.contains("line 1 column 22"), "{}", fault.what);
    let fault = read_bytes(b"{\"workload_graph\": 3}").unwrap_err();
    assert!(fault.what.contains("'workload_graph' is no list"), "{}", fault.what);
}

#[test]
fn a_collective_over_some_dimensions_only_is_marked() {
    let dimensions = |flags: &[u8]| attribute("involved_dim", &list(28, flags));
    let file = [
        metadata(),
        node(1, &dimensions(&[1, 1])),
        node(2, &dimensions(&[1, 0])),
        node(3, &dimensions(&[])),
    ];
    assert_eq!(read_bytes(&file.concat()).unwrap().rows_in_some_dimensions, [1]);
}

/// A list alternative of an attribute's value, packed.
fn list(number: u32, items: &[u8]) -> Vec<u8> {
    let tag = number << 3 | 2;
    let mut value = vec![tag as u8 | 0x80, (tag >> 7) as u8];
    value.extend(framed(&field(1, items)));
    value
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let file = metadata();
    assert!(decode(|| Ok(&file[..]), 3).unwrap_err().what.contains("larger"));
}

proptest! {
    /// Whatever the bytes are, reading them ends in columns that fit each other or in an error.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        if let Ok(columns) = read_bytes(&bytes) {
            prop_assert_eq!(columns.id.len(), columns.group.len());
        }
    }

    /// JSON with some bytes changed never panics.
    #[test]
    fn damaged_json_never_panics(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut file = br#"{"id":"5","type":"COMP_NODE","attr":[{"name":"ts","int64Val":"4"}]}"#
            .to_vec();
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(columns) = read_bytes(&file) {
            prop_assert_eq!(columns.name_offsets.len(), columns.id.len() + 1);
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
