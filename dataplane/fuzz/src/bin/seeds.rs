//! Writes a seed corpus for each fuzz target, from the project's own vectors: `seeds DIRECTORY`.

#[path = "../../../tests/roce/frames.rs"]
mod frames;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::path::Path;
use std::{env, fs};

// The coverage runtime, which instrumented code asks for.
use libfuzzer_sys as _;

use _native::roce::opcode::OPCODES;
use _native::roce::packet::{Bth, Packet};
use _native::roce::{Frame, Payload, encode};

fn main() -> io::Result<()> {
    let directory = env::args().nth(1).expect("usage: seeds DIRECTORY");
    let directory = Path::new(&directory);
    write(directory, "decode", &frames())?;
    write(directory, "forward", &frames())?;
    write(directory, "trace", &traces()?)?;
    write(directory, "job", &jobs())?;
    write(directory, "connection", &steps())?;
    write(directory, "hostile_peer", &steps())
}

fn write(directory: &Path, target: &str, seeds: &[Vec<u8>]) -> io::Result<()> {
    let directory = directory.join(target);
    fs::create_dir_all(&directory)?;
    for (index, seed) in seeds.iter().enumerate() {
        fs::write(directory.join(format!("seed-{index:02}")), seed)?;
    }
    Ok(())
}

/// The frames of other implementations, and one frame for each opcode.
fn frames() -> Vec<Vec<u8>> {
    use frames::*;
    let mut seeds: Vec<Vec<u8>> =
        [V1, F1, F2, F3, F4, F6, F7, F8, XOFF_PRIORITY_3].into_iter().map(hex).collect();
    for (ip_packet, ether_type) in [(V2, [0x08, 0x00]), (V3, [0x86, 0xDD])] {
        seeds.push([&[2; 12][..], &ether_type, &hex(ip_packet)].concat());
    }
    for row in &OPCODES {
        let length_bytes = if row.has_payload { 257 } else { 0 };
        let payload = Payload::Pattern { offset_bytes: 1000, length_bytes };
        let bth = Bth { opcode: row.opcode, ..Bth::default() };
        let packet = Packet { bth, payload, ..Packet::default() };
        let mut bytes = Vec::new();
        encode(&Frame::Roce(Box::new(packet)), [2; 6], [4; 6], &mut bytes);
        seeds.push(bytes);
    }
    seeds
}

/// Traces of every dialect and JSON form, and the first ones in gzip.
fn traces() -> io::Result<Vec<Vec<u8>>> {
    let mut seeds =
        vec![v4(), [node(&[]), node(&[0x18, 4])].concat(), v1(), typed(true), typed(false)];
    for (index, trace) in seeds.clone().iter().enumerate() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(index as u32 % 2 * 9));
        encoder.write_all(trace)?;
        seeds.push(encoder.finish()?);
    }
    seeds.extend(JSON_TRACES.map(|text| text.as_bytes().to_vec()));
    Ok(seeds)
}

const JSON_TRACES: [&str; 3] = [
    r#"{"version":"0.0.4"}{"id":"5","name":"a","type":"COMM_COLL_NODE","dataDeps":["7"],
"ctrlDeps":[3],"durationMicros":"3","startTimeMicros":"9","inputs":{"values":"[]"},"attr":[
{"name":"comm_size","int64Val":"4294967296"},{"name":"comm_type","int64Val":"6"},
{"name":"is_cpu_op","boolVal":false},{"name":"pg_name","stringVal":"1"}]}{}"#,
    r#"{"workload_graph":[{"Id":2,"Name":"n","NodeType":4,"ctrlDeps":[3],"data_deps":[1],
"runtime":318,"is_cpu_op":true,"involved_dim":[true,false]}]}"#,
    r#"{"nodes":[{"id":2,"name":"n","node_type":"coll_comm_node","comm_type":"ALL_TO_ALL",
"comm_size":8,"comm_group":3,"duration_micros":1.5e3}]}"#,
];

/// v0.0.4 with metadata, dependencies and all attributes that become columns.
fn v4() -> Vec<u8> {
    let attributes: Vec<u8> = [
        "comm_size",
        "comm_type",
        "comm_src",
        "comm_dst",
        "comm_tag",
        "stream",
        "tid",
        "ts",
        "is_cpu_op",
        "num_ops",
        "tensor_size",
        "comm_group",
    ]
    .into_iter()
    .flat_map(|name| field(10, &[field(1, name.as_bytes()), vec![9 << 3, 3]].concat()))
    .collect();
    let group = field(10, &[field(1, b"pg_name"), vec![0xEA, 1, 1, b'7']].concat());
    let dependencies = [0x18, 7, 0x22, 1, 1, 0x2A, 2, 1, 2, 0x30, 5, 0x38, 9];
    let init = [field(2, b"## process_group:init ##"), field(8, &field(1, b"['[]']"))].concat();
    [
        framed(&field(1, b"0.0.4")),
        node(&[&dependencies[..], &attributes, &group].concat()),
        node(&init),
    ]
    .concat()
}

/// v0.0.1: attributes are fields of the node.
fn v1() -> Vec<u8> {
    let send = [0x18, 4, 0x20, 1, 0x38, 0xDC, 0x0B, 0x68, 2, 0x70, 0, 0x78, 1];
    let places = [0x88, 1, 3, 0x90, 1, 99, 0x98, 1, 7];
    [node(&[0x18, 3]), node(&[&send[..], &places].concat())].concat()
}

/// v0.0.2, or v0.0.3 with metadata: attributes have a type.
fn typed(is_v2: bool) -> Vec<u8> {
    let (kind, value) = if is_v2 { (1, [0x28, 5]) } else { (2, [0x30, 5]) };
    let attributes: Vec<u8> = ["comm_size", "runtime", "is_host_op", "comm_type", "involved_dim"]
        .into_iter()
        .flat_map(|name| {
            field(11, &[&field(1, name.as_bytes())[..], &[0x10, kind], &value].concat())
        })
        .collect();
    let schema = [&field(1, b"schema")[..], &[0x10, 4], &field(8, b"1.0.1")].concat();
    let metadata = if is_v2 { Vec::new() } else { framed(&field(1, &schema)) };
    [metadata, node(&[&[0x18, 6, 0x22, 2, 1, 2][..], &attributes].concat())].concat()
}

/// A node with id 1.
fn node(rest: &[u8]) -> Vec<u8> {
    framed(&[&[0x08, 1][..], rest].concat())
}

/// A length-delimited field with a number below 16.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &framed(content)].concat()
}

/// A message with its length prefix.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut length = message.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(message);
    bytes
}

/// Job configurations: two NICs on a wire, and three on a switch.
fn jobs() -> Vec<Vec<u8>> {
    let seeds =
        [include_str!("../../seeds/job/pair.json"), include_str!("../../seeds/job/star.json")];
    seeds
        .into_iter()
        .map(|text| {
            let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
            serde_json::from_value::<_native::config::JobConfig>(document.clone())
                .expect("a job configuration as it is now");
            document.to_string().into_bytes()
        })
        .collect()
}

/// Plain runs of steps, for each kind of loss recovery.
fn steps() -> Vec<Vec<u8>> {
    let run =
        [0, 0, 200, 2, 0x80, 3, 100, 1, 2, 15, 7, 0, 0, 0x82, 15, 0x87, 0, 0, 6, 0x86, 12, 50, 13];
    [[0, 3, 2, 0, 0], [0, 2, 0, 1, 2], [0, 4, 1, 1, 0]]
        .into_iter()
        .map(|options| [&options[..], &[1, 2, 0, 0], &run, &run, &run].concat())
        .collect()
}
