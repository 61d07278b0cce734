//! Jobs whose messages an RDMA device carries. They need one, with the IPv4 addresses of the
//! environment variable `RANKWIRE_RDMA_ADDRESSES` (comma-separated, at least two), and are skipped
//! elsewhere: `tests/vm_lab` runs them in a virtual machine with rdma_rxe.

use _native::config::JobConfig;
use _native::engine::program::Program;
use _native::engine::records::{Column, Tables};
use _native::engine::testing::{star, workloads};
use _native::io::WallEmulation;
use _native::io::clock::monotonic_ns;
use _native::io::port::PortSpec;
use _native::units::PS_PER_US;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);

fn addresses() -> Option<Vec<Ipv4Addr>> {
    let text = std::env::var("RANKWIRE_RDMA_ADDRESSES").ok()?;
    Some(text.split(',').map(|address| address.parse().expect("an address")).collect())
}

/// NICs at the addresses, with 1024-byte packets and patient timers.
fn config(addresses: &[Ipv4Addr]) -> JobConfig {
    let mut config = star(addresses.len() as u32).0;
    for (nic, address) in config.nics.iter_mut().zip(addresses) {
        nic.address = *address;
    }
    config.transport.mtu_bytes = 1024;
    config.transport.retransmission_timeout_ps = 500_000 * PS_PER_US;
    config
}

fn emulation(config: &JobConfig, programs: &[Arc<Program>]) -> WallEmulation {
    let names: Vec<String> = config.nics.iter().map(|nic| nic.name.clone()).collect();
    let specs: BTreeMap<String, PortSpec> = (config.nics.iter())
        .map(|nic| {
            let spec = format!(r#"{{"driver": "verbs", "address": "{}"}}"#, nic.address);
            (nic.name.clone(), serde_json::from_str(&spec).expect("a port"))
        })
        .collect();
    let local = Ipv4Addr::LOCALHOST;
    WallEmulation::new(config.clone(), programs, &names, 1, local, Some(&specs)).expect("a job")
}

/// Run a job to its end; its tables and counters.
fn run(config: &JobConfig, programs: &[Arc<Program>]) -> (Tables, Tables) {
    let emulation = emulation(config, programs);
    emulation.bind(&BTreeMap::new()).expect("devices");
    let ends = emulation.device_ends().expect("ends");
    assert_eq!(ends.len(), config.nics.len());
    emulation.connect(&BTreeMap::new(), &ends).expect("connections");
    emulation.start(monotonic_ns()).expect("a start");
    let end = Instant::now() + TIMEOUT;
    let total = |name: &str| {
        emulation.snapshot().totals.iter().find(|(key, _)| *key == name).expect("a total").1
    };
    while total("ops_done") < total("ops_total") {
        assert!(Instant::now() < end, "blocked: {:?}", emulation.blocked(8));
        assert_eq!(total("failed_qps"), 0, "{:?}", emulation.blocked(8));
        std::thread::sleep(Duration::from_millis(5));
    }
    emulation.stop();
    assert!(emulation.join(TIMEOUT).expect("no panic"));
    emulation.records().expect("records")
}

fn column(tables: &Tables, table: &str, name: &str) -> Vec<u64> {
    let (_, rows) = tables.iter().find(|(key, _)| *key == table).expect("the table");
    match &rows.iter().find(|(key, _)| *key == name).expect("the column").1 {
        Column::U64(values) => values.clone(),
        _ => panic!("{table}.{name} has other values"),
    }
}

/// Growth of a counter of the devices, summed over the NICs.
fn device_counter(counters: &Tables, wanted: &str) -> u64 {
    let (_, rows) = counters.iter().find(|(key, _)| *key == "adapter_counters").expect("the table");
    let Column::Text(names) = &rows[1].1 else { panic!("names are texts") };
    let values = column(counters, "adapter_counters", "value");
    names.iter().zip(values).filter(|(name, _)| *name == wanted).map(|(_, value)| value).sum()
}

#[test]
fn a_ring_of_messages_is_carried_by_the_adapter() {
    let Some(addresses) = addresses() else { return };
    let config = config(&addresses);
    let ranks = addresses.len() as u32;
    let (_, counters) = run(&config, &workloads::ring(ranks, 20, 10_000));
    let messages = vec![20; ranks as usize];
    assert_eq!(column(&counters, "adapters", "messages_received"), messages);
    assert_eq!(column(&counters, "adapters", "payload_mismatches"), vec![0; ranks as usize]);
    assert_eq!(
        column(&counters, "nics", "data_payload_bytes_received"),
        vec![200_000; ranks as usize]
    );
    assert!(device_counter(&counters, "rdma_sends") + device_counter(&counters, "sent_pkts") > 0);
}

#[test]
fn a_message_longer_than_the_memory_is_several_writes() {
    let Some(addresses) = addresses() else { return };
    let config = config(&addresses[..2]);
    let (_, counters) = run(&config, &workloads::one_message(5 << 20));
    assert_eq!(column(&counters, "adapters", "writes_posted"), [3, 0]);
    assert_eq!(column(&counters, "adapters", "messages_received"), [0, 1]);
    assert_eq!(column(&counters, "adapters", "payload_mismatches"), [0, 0]);
    assert_eq!(column(&counters, "nics", "data_payload_bytes_received"), [0, 5 << 20]);
}

#[test]
fn empty_messages_and_many_at_once_are_carried() {
    let Some(addresses) = addresses() else { return };
    let mut config = config(&addresses);
    config.transport.qps_per_peer = 2;
    let ranks = addresses.len() as u32;
    run(&config, &workloads::all_to_all(ranks, 0));
    run(&config, &workloads::ring(ranks, 300, 1));
}

#[test]
fn receivers_may_say_when_a_message_is_to_be_sent() {
    let Some(addresses) = addresses() else { return };
    let mut config = config(&addresses);
    config.transport.clear_to_send = true;
    let ranks = addresses.len() as u32;
    let (_, counters) = run(&config, &workloads::ring(ranks, 10, 3000));
    let expected = vec![30_000 + 10 * 64; ranks as usize];
    assert_eq!(column(&counters, "nics", "data_payload_bytes_received"), expected);
}

#[test]
fn a_missing_device_says_what_to_load_and_a_missing_library_what_to_install() {
    if addresses().is_some() {
        return;
    }
    let config = config(&[Ipv4Addr::new(198, 18, 7, 1), Ipv4Addr::new(198, 18, 7, 2)]);
    let emulation = emulation(&config, &workloads::one_message(1));
    let error = emulation.bind(&BTreeMap::new()).expect_err("nothing is there").to_string();
    assert!(error.starts_with("verbs on 198.18.7.1: "), "{error}");
    let says = ["apt install libibverbs1", "modprobe rdma_rxe", "give INTERFACE the address"];
    assert!(says.iter().any(|remedy| error.contains(remedy)), "{error}");
}

#[test]
fn time_can_not_be_dilated() {
    let config = config(&[Ipv4Addr::new(198, 18, 7, 1), Ipv4Addr::new(198, 18, 7, 2)]);
    let spec: PortSpec =
        serde_json::from_str(r#"{"driver": "verbs", "address": "198.18.7.1"}"#).expect("a port");
    let names = ["nic0".to_owned()];
    let specs = BTreeMap::from([("nic0".to_owned(), spec)]);
    let programs = workloads::one_message(1);
    let local = Ipv4Addr::LOCALHOST;
    let refused = WallEmulation::new(config, &programs[..1], &names, 10, local, Some(&specs));
    let text = refused.err().expect("refused").to_string();
    assert!(text.contains("time_dilation must be 1"), "{text}");
}
