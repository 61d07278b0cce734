//! Which device, port and GID has an address: read from sysfs, without the library.
//!
//! Source: Linux, `Documentation/ABI/stable/sysfs-class-infiniband`.

use super::error::{LOAD_DRIVER, VerbsError};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// Where the kernel shows RDMA devices.
pub const CLASS: &str = "/sys/class/infiniband";
const ROCE_V2: &str = "RoCE v2";

/// Where an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the device.
    pub device: String,
    /// Number of its port, from 1.
    pub port: u8,
    /// Index in the GID table.
    pub gid_index: u8,
    /// Interface of the operating system; empty if the kernel does not say.
    pub interface: String,
}

/// The GID of an IPv4 address. Source: IBTA volume 1, annex A17.4.5.2 (IPv4-mapped).
pub fn gid_of(address: Ipv4Addr) -> [u8; 16] {
    address.to_ipv6_mapped().octets()
}

/// Find the RoCEv2 GID of an address, on `interface` if one is named.
pub fn find(class: &Path, address: Ipv4Addr, interface: Option<&str>) -> Result<Place, VerbsError> {
    let devices = entries(class);
    if devices.is_empty() {
        return Err(VerbsError::new("this host has no RDMA device", LOAD_DRIVER));
    }
    let found: Vec<Place> =
        devices.iter().flat_map(|device| places(class, device, address)).collect();
    let fits = |place: &&Place| interface.is_none_or(|wanted| place.interface == wanted);
    if let Some(place) = found.iter().find(fits) {
        return Ok(place.clone());
    }
    Err(match (found.first(), interface) {
        (Some(place), Some(wanted)) => VerbsError::new(
            format!(
                "its RoCE v2 GID is on {} ({}), not on {wanted}",
                place.interface, place.device
            ),
            "name that interface",
        ),
        _ => missing(&devices, interface),
    })
}

fn missing(devices: &[String], interface: Option<&str>) -> VerbsError {
    let interface = interface.unwrap_or("INTERFACE");
    VerbsError::new(
        format!(
            "no RDMA device has a RoCE v2 GID for this address (there is {})",
            devices.join(", ")
        ),
        format!(
            "give {interface} the address and bring it up; see that RoCE v2 is on, and that rdma link \
             shows a device with netdev {interface}, or make one: modprobe rdma_rxe && rdma link add \
             rxe0 type rxe netdev {interface}"
        ),
    )
}

/// All RoCEv2 GIDs of a device that are the address.
fn places(class: &Path, device: &str, address: Ipv4Addr) -> Vec<Place> {
    let ports = class.join(device).join("ports");
    let mut places = Vec::new();
    for port in entries(&ports) {
        let folder = ports.join(&port);
        let Ok(number) = port.parse() else { continue };
        for index in entries(&folder.join("gids")) {
            let line = |name: &str| read(&folder.join(name).join(&index));
            let is_it = parse_gid(&line("gids")) == Some(gid_of(address))
                && line("gid_attrs/types") == ROCE_V2;
            if let (true, Ok(gid_index)) = (is_it, index.parse()) {
                let interface = line("gid_attrs/ndevs");
                places.push(Place { device: device.into(), port: number, gid_index, interface });
            }
        }
    }
    places.sort_by_key(|place| place.gid_index);
    places
}

/// Rate of a port, which the kernel tells as `100 Gb/sec (4X EDR)`; 0 if it does not.
pub fn port_rate_bps(class: &Path, place: &Place) -> u64 {
    let port = class.join(&place.device).join("ports").join(place.port.to_string());
    let text = read(&port.join("rate"));
    let gigabits = text.strip_suffix(')').and_then(|_| text.split_once(" Gb/sec ("));
    let rate_gbps = gigabits.and_then(|(number, _)| number.parse::<f64>().ok());
    rate_gbps.map_or(0, |rate_gbps| (rate_gbps * 1e9).round().max(0.0) as u64)
}

fn parse_gid(text: &str) -> Option<[u8; 16]> {
    text.parse::<std::net::Ipv6Addr>().ok().map(|gid| gid.octets())
}

/// Names in a folder, in order; none if it can't be read.
fn entries(folder: &Path) -> Vec<String> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        listed.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The only line of a file; empty if it can't be read, as unused entries can't.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 7, 1);

    /// A class folder with GIDs: device, index, GID, type, interface.
    fn class(name: &str, gids: &[(&str, &str, &str, &str, &str)]) -> PathBuf {
        let own = format!("rankwire-gids-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(own);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("a folder");
        for (device, index, gid, kind, interface) in gids {
            let port = root.join(device).join("ports/1");
            for (part, text) in
                [("gids", gid), ("gid_attrs/types", kind), ("gid_attrs/ndevs", interface)]
            {
                fs::create_dir_all(port.join(part)).expect("a folder");
                fs::write(port.join(part).join(index), format!("{text}\n")).expect("a file");
            }
        }
        root
    }

    const MAPPED: &str = "0000:0000:0000:0000:0000:ffff:c612:0701";

    #[test]
    fn the_entry_of_the_address_and_of_roce_v2_is_taken() {
        let root = class(
            "found",
            &[
                ("mlx5_0", "0", "fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2", "eth0"),
                ("mlx5_0", "2", MAPPED, "IB/RoCE v1", "eth0"),
                ("mlx5_0", "3", MAPPED, "RoCE v2", "eth0"),
            ],
        );
        let place = find(&root, ADDRESS, Some("eth0")).expect("there is one");
        assert_eq!((place.device.as_str(), place.port, place.gid_index), ("mlx5_0", 1, 3));
        assert_eq!(place.interface, "eth0");
        let other = find(&root, ADDRESS, Some("eth1")).expect_err("elsewhere").to_string();
        assert!(other.contains("on eth0 (mlx5_0), not on eth1"), "{other}");
    }

    #[test]
    fn a_missing_gid_says_how_to_get_one() {
        let root = class("missing", &[("rxe0", "1", MAPPED, "IB/RoCE v1", "eth0")]);
        let text = find(&root, ADDRESS, Some("eth0")).expect_err("RoCE v1 alone").to_string();
        assert!(text.contains("there is rxe0") && text.contains("netdev eth0"), "{text}");
    }

    #[test]
    fn the_rate_of_a_port_is_told_in_gigabits() {
        let root = class("rate", &[("mlx5_0", "3", MAPPED, "RoCE v2", "eth0")]);
        let place = find(&root, ADDRESS, None).expect("there is one");
        assert_eq!(port_rate_bps(&root, &place), 0);
        for (text, rate_bps) in
            [("100 Gb/sec (4X EDR)", 100_000_000_000), ("2.5 Gb/sec (1X SDR)", 2_500_000_000)]
        {
            fs::write(root.join("mlx5_0/ports/1/rate"), format!("{text}\n")).expect("a file");
            assert_eq!(port_rate_bps(&root, &place), rate_bps);
        }
    }

    #[test]
    fn no_device_at_all_says_what_to_load() {
        let text = find(Path::new("/nowhere"), ADDRESS, None).expect_err("nothing").to_string();
        assert!(text.contains("no RDMA device") && text.contains("modprobe rdma_rxe"), "{text}");
    }
}
