//! What carried the frames and messages of a process, as tables.

use super::port::DriverName;
use super::ports::{NicPortCounters, Ports};
use super::verbs::nic::WriteCounters;
use super::verbs::sampler::Sample;
use super::wire::WireCounters;
use crate::engine::records::{Column, Table, Tables};

/// Of ports, and of adapters where there are some.
pub fn network_tables(ports: &Ports) -> Tables {
    let mut tables = vec![("ports", port_table(&ports.counters()))];
    if ports.devices().nics().next().is_some() {
        tables.push(("adapters", adapter_table(&ports.devices().write_counters())));
        tables.push(("adapter_counters", counter_table(ports.devices().device_counters())));
    }
    tables
}

/// What the adapters' counters had grown to, when.
pub fn sample_table(samples: &[Sample]) -> Table {
    vec![
        ("time_ps", Column::U64(samples.iter().map(|sample| sample.time_ps).collect())),
        ("nic", Column::U32(samples.iter().map(|sample| sample.nic).collect())),
        ("name", Column::Text(samples.iter().map(|sample| sample.name.to_string()).collect())),
        ("value", Column::U64(samples.iter().map(|sample| sample.value).collect())),
    ]
}

/// What NICs gave to their adapters and got from them.
fn adapter_table(rows: &[(u32, WriteCounters)]) -> Table {
    let nic = rows.iter().map(|row| row.0).collect();
    let column =
        |of: fn(&WriteCounters) -> u64| Column::U64(rows.iter().map(|r| of(&r.1)).collect());
    vec![
        ("nic", Column::U32(nic)),
        ("writes_posted", column(|c| c.writes_posted)),
        ("bytes_posted", column(|c| c.bytes_posted)),
        ("messages_received", column(|c| c.messages_received)),
        ("payload_mismatches", column(|c| c.payload_mismatches)),
    ]
}

/// What the adapters themselves counted, by name.
fn counter_table(rows: Vec<(u32, String, u64)>) -> Table {
    let nic = rows.iter().map(|row| row.0).collect();
    let value = rows.iter().map(|row| row.2).collect();
    let name = rows.into_iter().map(|row| row.1).collect();
    vec![("nic", Column::U32(nic)), ("name", Column::Text(name)), ("value", Column::U64(value))]
}

/// Of wires.
pub fn wire_table(rows: &[(u32, u8, WireCounters)]) -> Table {
    let link = rows.iter().map(|row| row.0).collect();
    let end = rows.iter().map(|row| row.1).collect();
    let column =
        |of: fn(&WireCounters) -> u64| Column::U64(rows.iter().map(|r| of(&r.2)).collect());
    vec![
        ("link", Column::U32(link)),
        ("end", Column::U8(end)),
        ("datagrams_sent", column(|c| c.datagrams_sent)),
        ("bytes_sent", column(|c| c.bytes_sent)),
        ("datagrams_received", column(|c| c.datagrams_received)),
        ("send_errors", column(|c| c.send_errors)),
        ("send_stalls", column(|c| c.send_stalls)),
        ("receive_overflows", column(|c| c.receive_overflows)),
        ("unexpected_sources", column(|c| c.unexpected_sources)),
        ("decode_errors", column(|c| c.decode_errors)),
        ("icrc_errors", column(|c| c.icrc_errors)),
    ]
}

fn port_table(rows: &[(u32, DriverName, NicPortCounters)]) -> Table {
    let nic = rows.iter().map(|row| row.0).collect();
    let column =
        |of: fn(&NicPortCounters) -> u64| Column::U64(rows.iter().map(|r| of(&r.2)).collect());
    vec![
        ("nic", Column::U32(nic)),
        ("frames_sent", column(|c| c.port.frames_sent)),
        ("bytes_sent", column(|c| c.port.bytes_sent)),
        ("bursts_sent", column(|c| c.port.bursts_sent)),
        ("send_errors", column(|c| c.port.send_errors)),
        ("send_stalls", column(|c| c.port.send_stalls)),
        ("frames_received", column(|c| c.port.frames_received)),
        ("bytes_received", column(|c| c.port.bytes_received)),
        ("bursts_received", column(|c| c.port.bursts_received)),
        ("receive_overflows", column(|c| c.port.receive_overflows)),
        ("misaddressed", column(|c| c.port.misaddressed)),
        ("untimed_frames", column(|c| c.port.untimed_frames)),
        ("queues_used", column(|c| c.port.queues_used)),
        ("unexpected_sources", column(|c| c.unexpected_sources)),
        ("decode_errors", column(|c| c.decode_errors)),
        ("icrc_errors", column(|c| c.icrc_errors)),
    ]
}
