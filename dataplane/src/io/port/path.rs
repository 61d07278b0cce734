//! Whether the destinations of a port are reachable, and how large packets may be on the way.

use super::{PortError, PortSpec};
use crate::io::socket;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// Any port: nothing is sent.
const DISCARD_PORT: u16 = 9;

/// Check that every destination has a route on which the longest packet fits. To be called in the
/// namespace of the port.
pub fn check(spec: &PortSpec) -> Result<(), PortError> {
    for &destination in &spec.destinations {
        let no_route = |source| PortError::system(spec, format!("route to {destination}"), source);
        let path_bytes = path_mtu_bytes(spec, destination).map_err(no_route)?;
        if path_bytes < spec.ip_packet_bytes {
            return Err(PortError::PathMtu {
                driver: spec.driver,
                address: spec.address,
                destination,
                path_bytes,
                needed_bytes: spec.ip_packet_bytes,
            });
        }
    }
    Ok(())
}

/// The largest IP packet that is known to pass: that of the first interface, until a router says
/// otherwise.
fn path_mtu_bytes(spec: &PortSpec, destination: Ipv4Addr) -> std::io::Result<u32> {
    let probe = UdpSocket::bind(SocketAddrV4::new(spec.address, 0))?;
    if let Some(interface) = &spec.interface {
        socket::bind_to_interface(&probe, interface)?;
    }
    probe.connect(SocketAddrV4::new(destination, DISCARD_PORT))?;
    let mtu = socket::option(&probe, libc::SOL_IP, libc::IP_MTU)?;
    Ok(mtu as u32)
}
