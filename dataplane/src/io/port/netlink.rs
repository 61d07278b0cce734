//! Routes, neighbours and limits of interfaces, asked of the kernel by rtnetlink in the calling
//! thread's network namespace. Source: RFC 3549, rtnetlink(7).
#![allow(unsafe_code)]

use super::interface::Interface;
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// MAC address of an Ethernet interface.
pub type Mac = [u8; 6];

/// States in which a neighbour's address can be used.
const USABLE: u16 = libc::NUD_PERMANENT
    | libc::NUD_REACHABLE
    | libc::NUD_STALE
    | libc::NUD_DELAY
    | libc::NUD_PROBE
    | libc::NUD_NOARP;
const HEADER_BYTES: usize = 16;
/// `struct rtmsg` and `struct ndmsg`.
const BODY_BYTES: usize = 12;
/// `struct ifinfomsg`.
const LINK_BODY_BYTES: usize = 16;

/// A socket to the kernel's routing tables.
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Open it in the calling thread's network namespace.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; its result is checked before it is owned.
        let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Self { socket: unsafe { OwnedFd::from_raw_fd(descriptor) }, sequence: 0 })
    }

    /// The gateway of a route; `None` if the destination is on the link.
    pub fn gateway(
        &mut self,
        interface: &Interface,
        destination: Ipv4Addr,
    ) -> io::Result<Option<Ipv4Addr>> {
        let mut body = vec![0; BODY_BYTES];
        (body[0], body[1]) = (libc::AF_INET as u8, 32);
        put_attribute(&mut body, libc::RTA_DST, &destination.octets());
        put_attribute(&mut body, libc::RTA_OIF, &interface.index.to_ne_bytes());
        let answer = self.ask(libc::RTM_GETROUTE, &body)?;
        Ok(attribute(&answer, BODY_BYTES, libc::RTA_GATEWAY).map(Ipv4Addr::from))
    }

    /// What is known of a neighbour.
    pub fn neighbour(&mut self, interface: &Interface, hop: Ipv4Addr) -> io::Result<Option<Mac>> {
        let mut body = vec![0; BODY_BYTES];
        body[0] = libc::AF_INET as u8;
        body[4..8].copy_from_slice(&interface.index.to_ne_bytes());
        put_attribute(&mut body, libc::NDA_DST, &hop.octets());
        match self.ask(libc::RTM_GETNEIGH, &body) {
            Ok(answer) => {
                let state = u16::from_ne_bytes([answer[8], answer[9]]);
                Ok(attribute(&answer, BODY_BYTES, libc::NDA_LLADDR).filter(|_| state & USABLE != 0))
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Packets that an interface lets the kernel take as one, at most.
    pub fn max_segments(&mut self, interface: &Interface) -> io::Result<usize> {
        let mut body = vec![0; LINK_BODY_BYTES];
        body[4..8].copy_from_slice(&interface.index.to_ne_bytes());
        let answer = self.ask(libc::RTM_GETLINK, &body)?;
        let most = attribute(&answer, LINK_BODY_BYTES, libc::IFLA_GSO_MAX_SEGS);
        Ok(most.map_or(usize::MAX, |most| u32::from_ne_bytes(most) as usize))
    }

    /// Send one request; the body of its answer.
    fn ask(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
        message.extend_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.extend_from_slice(&self.sequence.to_ne_bytes());
        message.extend_from_slice(&0u32.to_ne_bytes());
        message.extend_from_slice(body);
        // SAFETY: all-zero is a valid value of this plain C structure: the kernel as addressee.
        let mut kernel: libc::sockaddr_nl = unsafe { zeroed() };
        kernel.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        // SAFETY: the buffers have the lengths that are given, and the kernel keeps none.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
                (&kernel as *const libc::sockaddr_nl).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        self.answer()
    }

    fn answer(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0u8; 32_768];
        // SAFETY: `bytes` has the length that is given.
        let count = unsafe {
            libc::recv(self.socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0)
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if length > count || length < HEADER_BYTES + 4 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let body = &bytes[HEADER_BYTES..length];
        if kind == libc::NLMSG_ERROR as u16 {
            let code = i32::from_ne_bytes([body[0], body[1], body[2], body[3]]);
            return Err(io::Error::from_raw_os_error(-code));
        }
        if body.len() < BODY_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(body.to_vec())
    }
}

/// Append an attribute: length, type, value, padded to four bytes.
fn put_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The value of an attribute behind the fixed part, which has exactly this length.
fn attribute<const BYTES: usize>(
    body: &[u8],
    fixed_bytes: usize,
    kind: u16,
) -> Option<[u8; BYTES]> {
    let mut rest = body.get(fixed_bytes..)?;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let found = u16::from_ne_bytes([rest[2], rest[3]]);
        if length < 4 || length > rest.len() {
            return None;
        }
        if found == kind {
            return rest[4..length].try_into().ok();
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_behind_others_and_never_beyond_the_end() {
        let mut body = vec![0; BODY_BYTES];
        put_attribute(&mut body, 1, &[9]);
        put_attribute(&mut body, 5, &[198, 18, 0, 1]);
        assert_eq!(attribute(&body, BODY_BYTES, 5), Some([198, 18, 0, 1]));
        assert_eq!(attribute::<6>(&body, BODY_BYTES, 5), None);
        assert_eq!(attribute::<4>(&body, BODY_BYTES, 7), None);
        assert_eq!(attribute::<4>(&body[..body.len() - 1], BODY_BYTES, 5), None);
    }

    #[test]
    fn the_kernel_has_a_route_to_loopback_without_a_gateway() {
        let loopback = Interface { name: "lo".into(), index: 1, mtu_bytes: 65_536, mac: [0; 6] };
        let mut kernel = Netlink::open().expect("rtnetlink works");
        assert_eq!(kernel.gateway(&loopback, Ipv4Addr::LOCALHOST).expect("it is up"), None);
        assert!(kernel.max_segments(&loopback).expect("it is there") >= 1);
    }
}
