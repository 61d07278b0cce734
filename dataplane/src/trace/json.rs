//! Traces in JSON: three forms into the same columns.

use super::columns::Columns;
use super::error::Fault;
use super::metadata::MetadataValue;
use super::node::{self, Node};
use super::sniff::Dialect;
use serde_json::{Deserializer, Map, Value};
use std::borrow::Cow;
use std::io::{BufReader, Read};

/// Names of node types in protobuf's JSON, in the order of their numbers.
const PROTOBUF_TYPES: [&str; 8] = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
];

/// Names of node types in STAGE's JSON, in the order of their numbers.
const STAGE_TYPES: [&str; 8] = [
    "invalid_node",
    "metadata_node",
    "mem_load_node",
    "mem_store_node",
    "comp_node",
    "comm_send_node",
    "comm_recv_node",
    "coll_comm_node",
];

/// Names of collective types, in the order of their numbers.
const COLLECTIVES: [&str; 10] = [
    "ALL_REDUCE",
    "REDUCE",
    "ALL_GATHER",
    "GATHER",
    "SCATTER",
    "BROADCAST",
    "ALL_TO_ALL",
    "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK",
    "BARRIER",
];

/// What to do about JSON that is damaged.
const REPAIR: &str = "copy or write the file again";

type Object = Map<String, Value>;

/// Decode a trace in one of the JSON forms. Offsets of nodes are known only where each is a
/// document of its own.
pub(super) fn decode(
    input: impl Read,
    dialect: Dialect,
    limit_bytes: u64,
) -> Result<Columns, Fault> {
    let mut columns = Columns { dialect, ..Columns::default() };
    let documents = Deserializer::from_reader(BufReader::new(input.take(limit_bytes)));
    let mut documents = documents.into_iter::<Value>();
    let mut offset = 0;
    while let Some(document) = documents.next() {
        let document = document.map_err(|error| malformed(offset, &error.to_string()))?;
        let object = document.as_object().ok_or_else(|| malformed(offset, "no object"))?;
        match dialect {
            Dialect::JsonizerJson if !object.contains_key("type") && !object.contains_key("id") => {
                put_metadata(object, &mut columns);
            }
            Dialect::JsonizerJson => put_protobuf_node(offset, object, &mut columns),
            Dialect::FeederJson => put_all(offset, object, "workload_graph", &mut columns)?,
            _ => put_all(offset, object, "nodes", &mut columns)?,
        }
        offset = documents.byte_offset() as u64;
    }
    columns.shrink();
    Ok(columns)
}

fn malformed(offset: u64, what: &str) -> Fault {
    Fault::new(offset, format!("the JSON is damaged: {what}"), REPAIR)
}

/// Put every node of a document's list.
fn put_all(offset: u64, document: &Object, key: &str, columns: &mut Columns) -> Result<(), Fault> {
    let nodes = document.get(key).and_then(Value::as_array);
    let nodes = nodes.ok_or_else(|| malformed(offset, &format!("'{key}' is no list")))?;
    for node in nodes {
        let node = node.as_object().ok_or_else(|| malformed(offset, "a node is no object"))?;
        put_plain_node(offset, node, columns);
    }
    Ok(())
}

fn put_metadata(object: &Object, columns: &mut Columns) {
    if let Some(version) = object.get("version").and_then(Value::as_str) {
        columns.metadata.push(("version".to_owned(), MetadataValue::Text(version.to_owned())));
    }
    for (name, value) in attributes(object) {
        let value = match (integer(value), value.as_str()) {
            (_, Some(text)) => MetadataValue::Text(text.to_owned()),
            (Some(number), None) => MetadataValue::Integer(number),
            _ => continue,
        };
        columns.metadata.push((name.to_owned(), value));
    }
}

/// Name and value of each attribute in protobuf's JSON; lists and empty ones are left out.
fn attributes(object: &Object) -> impl Iterator<Item = (&str, &Value)> {
    let items = object.get("attr").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_object).filter_map(|attribute| {
        let name = attribute.get("name")?.as_str()?;
        let value = attribute.iter().find(|(key, _)| key.ends_with("Val"))?.1;
        Some((name, value))
    })
}

/// A node in protobuf's JSON: camel case, 64-bit numbers as text, defaults left out.
fn put_protobuf_node(offset: u64, object: &Object, columns: &mut Columns) {
    let mut node = Node {
        id: unsigned(object.get("id")),
        name: text(object, "name").as_bytes(),
        node_type: enumerated(object.get("type"), &PROTOBUF_TYPES).unwrap_or(0),
        start_us: unsigned(object.get("startTimeMicros")),
        duration_us: unsigned(object.get("durationMicros")),
        ..Node::default()
    };
    for (name, value) in attributes(object) {
        put_value(&mut node, name, value);
    }
    put_dependencies(object.get("dataDeps"), &mut columns.data_deps);
    put_dependencies(object.get("ctrlDeps"), &mut columns.ctrl_deps);
    if columns.process_groups_json.is_none() && node::names_process_groups(node.name) {
        let values = object.get("inputs").and_then(|inputs| inputs.get("values"));
        columns.process_groups_json = values.and_then(Value::as_str).map(str::to_owned);
    }
    node::push(offset, &node, columns);
}

/// A node of the C++ feeder or of STAGE: every attribute is a key of its own.
fn put_plain_node(offset: u64, object: &Object, columns: &mut Columns) {
    let mut node = Node::default();
    for (key, value) in object {
        match key.as_str() {
            "Id" | "id" => node.id = unsigned(Some(value)),
            "Name" | "name" => node.name = value.as_str().unwrap_or_default().as_bytes(),
            "NodeType" | "node_type" => {
                node.node_type = enumerated(Some(value), &STAGE_TYPES).unwrap_or(0);
            }
            "runtime" | "duration_micros" => node.duration_us = unsigned(Some(value)),
            "data_deps" => put_dependencies(Some(value), &mut columns.data_deps),
            "ctrlDeps" | "ctrl_deps" => put_dependencies(Some(value), &mut columns.ctrl_deps),
            _ => put_value(&mut node, key, value),
        }
    }
    node::push(offset, &node, columns);
}

/// Take over the value of an attribute, if it becomes a column.
fn put_value<'a>(node: &mut Node<'a>, name: &str, value: &'a Value) {
    if name == "comm_type" {
        let number = enumerated(Some(value), &COLLECTIVES);
        node.attributes.comm_type = number.map_or(-1, |n| i8::try_from(n).unwrap_or(i8::MAX));
    } else if let Some(number) = integer(value).filter(|_| !is_group_text(name, value)) {
        node.attributes.put_number(name.as_bytes(), number);
    } else if let Some(text) = value.as_str() {
        node.attributes.put_text(name.as_bytes(), Cow::Borrowed(text));
    }
}

/// A group's name is text even when it looks like a number.
fn is_group_text(name: &str, value: &Value) -> bool {
    name == "pg_name" && value.is_string()
}

fn put_dependencies(value: Option<&Value>, items: &mut Vec<u64>) {
    let listed = value.and_then(Value::as_array).into_iter().flatten();
    items.extend(listed.map(|item| unsigned(Some(item))));
}

fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Number of an enumerated value, given as a number or by its name.
fn enumerated(value: Option<&Value>, names: &[&str]) -> Option<u64> {
    let value = value?;
    match value.as_str().and_then(|text| names.iter().position(|name| *name == text)) {
        Some(index) => Some(index as u64),
        None => integer(value).and_then(|number| u64::try_from(number).ok()),
    }
}

/// A number, a Boolean, or a number in text; what is beyond an `i64` becomes its largest value.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_u64().map(|_| i64::MAX))
            .or_else(|| number.as_f64().map(|float| float as i64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn unsigned(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::Number(number)) => number.as_u64().unwrap_or(0),
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        _ => 0,
    }
}
