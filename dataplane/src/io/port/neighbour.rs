//! The MAC address that a frame for a destination has to have: that of the next hop of its route.

use super::interface::Interface;
use super::netlink::{Mac, Netlink};
use super::{PortError, PortSpec};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

/// Any port: one empty datagram makes the kernel ask for the address.
const DISCARD_PORT: u16 = 9;
/// Three seconds: the kernel asks three times, a second apart. Source: arp(7), `mcast_solicit`.
const TRIES: usize = 150;
const PROVOKE_EVERY: usize = 50;
const TRY_EVERY: Duration = Duration::from_millis(20);

/// MAC address of the next hop towards a destination of the port.
pub fn next_hop(
    spec: &PortSpec,
    interface: &Interface,
    destination: Ipv4Addr,
) -> Result<Mac, PortError> {
    let refused = |what: String| move |source| PortError::system(spec, what, source);
    let mut kernel = Netlink::open().map_err(refused("asking the kernel for routes".into()))?;
    let hop = kernel
        .gateway(interface, destination)
        .map_err(refused(format!("route to {destination}")))?
        .unwrap_or(destination);
    for attempt in 0..TRIES {
        let known = kernel.neighbour(interface, hop);
        if let Some(mac) = known.map_err(refused(format!("MAC address of {hop}")))? {
            return Ok(mac);
        }
        if attempt % PROVOKE_EVERY == 0 {
            provoke(spec, destination).map_err(refused(format!("route to {destination}")))?;
        }
        std::thread::sleep(TRY_EVERY);
    }
    let silence = io::Error::from_raw_os_error(libc::EHOSTUNREACH);
    Err(PortError::system(
        spec,
        format!("MAC address of {hop}, the next hop to {destination}"),
        silence,
    ))
}

fn provoke(spec: &PortSpec, destination: Ipv4Addr) -> io::Result<()> {
    let socket = UdpSocket::bind(SocketAddrV4::new(spec.address, 0))?;
    socket.send_to(&[], SocketAddrV4::new(destination, DISCARD_PORT)).map(|_| ())
}
