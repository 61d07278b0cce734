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
use _native::io::verbs::DeviceEnds;
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

/// Start a job whose devices know each other by the ends that `change` has left.
fn start(
    config: &JobConfig,
    programs: &[Arc<Program>],
    change: impl FnOnce(&mut DeviceEnds),
) -> WallEmulation {
    let emulation = emulation(config, programs);
    emulation.bind(&BTreeMap::new()).expect("devices");
    let mut ends = emulation.device_ends().expect("ends");
    assert_eq!(ends.len(), config.nics.len());
    change(&mut ends);
    emulation.connect(&BTreeMap::new(), &ends).expect("connections");
    emulation.start(monotonic_ns()).expect("a start");
    emulation
}

fn total(emulation: &WallEmulation, name: &str) -> u64 {
    let snapshot = emulation.snapshot();
    snapshot.totals.iter().find(|(key, _)| *key == name).expect("a total").1
}

/// Wait, at most a minute.
fn wait_until(emulation: &WallEmulation, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "blocked: {:?}", emulation.blocked(8));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stop a job; its tables and counters.
fn stop(emulation: &WallEmulation) -> (Tables, Tables) {
    emulation.stop();
    assert!(emulation.join(TIMEOUT).expect("no panic"));
    emulation.records().expect("records")
}

/// Run a job to its end; its tables and counters.
fn run(config: &JobConfig, programs: &[Arc<Program>]) -> (Tables, Tables) {
    let emulation = start(config, programs, |_| ());
    wait_until(&emulation, || {
        assert_eq!(total(&emulation, "failed_qps"), 0, "{:?}", emulation.blocked(8));
        total(&emulation, "ops_done") == total(&emulation, "ops_total")
    });
    stop(&emulation)
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
    let (tables, counters) = run(&config, &workloads::ring(ranks, 20, 10_000));
    let messages = vec![20; ranks as usize];
    assert_eq!(column(&counters, "adapters", "messages_received"), messages);
    assert_eq!(column(&counters, "adapters", "payload_mismatches"), vec![0; ranks as usize]);
    assert_eq!(
        column(&counters, "nics", "data_payload_bytes_received"),
        vec![200_000; ranks as usize]
    );
    let sent = device_counter(&counters, "sent_pkts");
    assert!(sent > 0);
    let series = column(&tables, "adapter_series", "value");
    assert!(!series.is_empty());
    assert!(series.iter().all(|&value| value <= sent), "{series:?} end with {sent}");
}

#[test]
fn a_message_longer_than_the_memory_is_several_writes() {
    let Some(addresses) = addresses() else { return };
    let config = config(&addresses[..2]);
    let emulation = start(&config, &workloads::one_message(5 << 20), |_| ());
    wait_until(&emulation, || total(&emulation, "ops_done") == 2);
    assert_eq!(total(&emulation, "adapter_advances"), 2);
    let (_, counters) = stop(&emulation);
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
fn a_peer_that_does_not_answer_fails_the_connection() {
    let Some(addresses) = addresses() else { return };
    let mut config = config(&addresses[..2]);
    config.transport.retransmission_timeout_ps = 5_000 * PS_PER_US;
    config.transport.retry_count = 1;
    let emulation = start(&config, &workloads::one_message(5000), |ends| {
        let peer = ends.get_mut("nic1").expect("a device");
        peer.queue_pairs.get_mut("nic0").expect("its peer")[0] = 0xFF_FFF0;
    });
    wait_until(&emulation, || total(&emulation, "failed_qps") == 1);
    let (tables, _) = stop(&emulation);
    let (_, failures) = tables.iter().find(|(key, _)| *key == "failures").expect("the table");
    let reason = &failures.iter().find(|(key, _)| *key == "reason").expect("the column").1;
    let Column::Text(reasons) = reason else { panic!("reasons are texts") };
    assert_eq!(reasons, &["no acknowledgement after all retries"]);
}

#[test]
fn what_does_not_fit_the_plan_is_refused() {
    let Some(addresses) = addresses() else { return };
    let config = config(&addresses[..2]);
    let emulation = emulation(&config, &workloads::one_message(1));
    emulation.bind(&BTreeMap::new()).expect("devices");
    let ends = emulation.device_ends().expect("ends");
    let refusal = |change: &dyn Fn(&mut DeviceEnds)| {
        let mut ends = ends.clone();
        change(&mut ends);
        emulation.connect(&BTreeMap::new(), &ends).expect_err("refused").to_string()
    };
    let fewer = refusal(&|ends| {
        ends.get_mut("nic1").expect("a device").queue_pairs.clear();
    });
    assert!(fewer.contains("rank 1 has fewer queue pairs than planned"), "{fewer}");
    let odd = refusal(&|ends| ends.get_mut("nic1").expect("a device").memory_bytes = 1000);
    assert!(odd.contains("nic1: its memory holds no whole number of packets"), "{odd}");
    let unknown = refusal(&|ends| {
        let end = ends.remove("nic1").expect("a device");
        ends.insert("nic9".into(), end);
    });
    assert!(unknown.contains("nic9: no NIC has this name"), "{unknown}");
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
