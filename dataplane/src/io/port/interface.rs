//! Interfaces of the operating system, as the calling thread's network namespace has them.
#![allow(unsafe_code)]

use super::{PortError, PortSpec};
use std::ffi::{CStr, CString};
use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Longest IP packet.
    pub mtu_bytes: u32,
    /// MAC address; zeros where there is none.
    pub mac: [u8; 6],
}

/// The interface of a port: the one that it names, or else the one that has its address.
pub fn of_port(spec: &PortSpec) -> Result<Interface, PortError> {
    let name = match &spec.interface {
        Some(name) => Ok(name.clone()),
        None => name_of_address(spec.address),
    };
    let found = name.and_then(|name| describe(&name));
    found.map_err(|source| PortError::system(spec, interface_words(spec), source))
}

fn interface_words(spec: &PortSpec) -> String {
    match &spec.interface {
        Some(name) => format!("interface {name}"),
        None => format!("the interface of {}", spec.address),
    }
}

/// The interface that has an address; loopback has all of its network.
fn name_of_address(address: Ipv4Addr) -> io::Result<String> {
    let mut list: *mut libc::ifaddrs = null_mut();
    // SAFETY: the call writes the head of a list, which is freed below.
    if unsafe { libc::getifaddrs(&mut list) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut entry = list;
    let mut found = None;
    while !entry.is_null() && found.is_none() {
        // SAFETY: `entry` is an element of the list; its name is a C string, and an address of this
        // family is a `sockaddr_in`.
        unsafe {
            let raw = (*entry).ifa_addr;
            if !raw.is_null() && libc::c_int::from((*raw).sa_family) == libc::AF_INET {
                let has = (*raw.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                let has = Ipv4Addr::from(u32::from_be(has));
                if has == address || (has.is_loopback() && address.is_loopback()) {
                    found = Some(CStr::from_ptr((*entry).ifa_name).to_string_lossy().into_owned());
                }
            }
            entry = (*entry).ifa_next;
        }
    }
    // SAFETY: the list was made above and nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    found.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// What the system says of an interface.
fn describe(name: &str) -> io::Result<Interface> {
    let no_such = || io::Error::from_raw_os_error(libc::ENODEV);
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(no_such());
    }
    let c_name = CString::new(name).map_err(|_| no_such())?;
    // SAFETY: a C string.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 {
        return Err(no_such());
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mtu = ask(&socket, name, libc::SIOCGIFMTU)?;
    let hardware = ask(&socket, name, libc::SIOCGIFHWADDR)?;
    // SAFETY: these requests fill these members.
    let (mtu, hardware) = unsafe { (mtu.ifr_ifru.ifru_mtu, hardware.ifr_ifru.ifru_hwaddr.sa_data) };
    let mac = std::array::from_fn(|octet| hardware[octet] as u8);
    Ok(Interface { name: name.into(), index, mtu_bytes: mtu as u32, mac })
}

/// Queues of an interface's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Among which it spreads what it receives.
    pub receive: u32,
    /// From which it sends.
    pub transmit: u32,
}

/// The queues of an interface.
pub fn queues(interface: &Interface) -> io::Result<Queues> {
    // Source: `struct ethtool_channels`, Linux `include/uapi/linux/ethtool.h`.
    const GET_CHANNELS: u32 = 0x3C;
    const RECEIVE: usize = 5;
    const TRANSMIT: usize = 6;
    const COMBINED: usize = 8;
    let mut channels = [0u32; 9];
    channels[0] = GET_CHANNELS;
    match request(interface, libc::SIOCETHTOOL, &mut channels) {
        Ok(()) => Ok(Queues {
            receive: channels[RECEIVE] + channels[COMBINED],
            transmit: channels[TRANSMIT] + channels[COMBINED],
        }),
        // A driver without channels has one queue.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Ok(Queues { receive: 1, transmit: 1 })
        }
        Err(error) => Err(error),
    }
}

/// Ask an interface's driver for what stands in `about`, a structure that begins as the request wants.
pub(super) fn request<T>(
    interface: &Interface,
    request: libc::Ioctl,
    about: &mut T,
) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut named = named(&interface.name);
    named.ifr_ifru.ifru_data = (about as *mut T).cast();
    // SAFETY: the socket is open, and the request reads and writes an `ifreq` that leads to the
    // structure of this request.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &mut named) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn named(name: &str) -> libc::ifreq {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut about: libc::ifreq = unsafe { zeroed() };
    for (to, from) in about.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    about
}

fn ask(socket: &UdpSocket, name: &str, request: libc::Ioctl) -> io::Result<libc::ifreq> {
    let mut about = named(name);
    // SAFETY: the socket is open and the request reads and writes an `ifreq`.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &mut about) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(about) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_every_address_of_its_network() {
        let name = name_of_address(Ipv4Addr::new(127, 1, 2, 3)).expect("loopback is up");
        let loopback = describe(&name).expect("it was just named");
        assert!(loopback.mtu_bytes >= 16_384 && loopback.index > 0, "{loopback:?}");
        assert_eq!(loopback.mac, [0; 6]);
    }

    #[test]
    fn an_interface_that_there_is_not_is_said_to_be_none() {
        for name in ["", "rankwire-none", "a-name-longer-than-any-interface", "nul\0"] {
            assert_eq!(describe(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name:?}");
        }
    }
}
