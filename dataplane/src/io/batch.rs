//! Many datagrams per system call: `sendmmsg` and `recvmmsg` with their scatter lists.
#![allow(unsafe_code)]

use super::receive_call::{receive_waiting, times};
use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Datagrams per call.
pub const BATCH: usize = 64;
/// Longest datagram: the usual jumbo frame of switches and a time of arrival, with room to notice
/// longer ones.
pub const MAX_FRAME_BYTES: usize = 9216 + 12 + 1;

/// Room for one control message with the time of arrival, aligned for its header.
type ControlBytes = [u64; 8];

/// One datagram of a [`ReceiveBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub source: SocketAddrV4,
    /// When the kernel took it, CLOCK_REALTIME in nanoseconds; `None` if it did not say.
    pub realtime_ns: Option<u64>,
    /// Its bytes; `None` if it was longer than any frame.
    pub bytes: Option<&'a [u8]>,
}

/// Buffers for one call; addresses in it stay valid when it moves, because they point to the heap.
pub struct ReceiveBatch {
    bytes: Box<[u8]>,
    names: Box<[libc::sockaddr_in]>,
    controls: Box<[ControlBytes]>,
    _slices: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in `headers` and `_slices` lead only into the heap blocks that the same value
// owns and that are never reallocated.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Empty buffers.
    pub fn new() -> Self {
        let mut bytes = vec![0u8; BATCH * MAX_FRAME_BYTES].into_boxed_slice();
        // SAFETY: all-zero is a valid value of these plain C structures.
        let (mut names, mut headers) = unsafe {
            (vec![zeroed(); BATCH].into_boxed_slice(), vec![zeroed(); BATCH].into_boxed_slice())
        };
        let mut controls = vec![[0u64; 8]; BATCH].into_boxed_slice();
        let mut slices: Box<[libc::iovec]> = bytes
            .chunks_mut(MAX_FRAME_BYTES)
            .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() })
            .collect();
        for ((header, name), slice) in headers.iter_mut().zip(&mut names).zip(&mut slices) {
            prepare(header, name, slice);
        }
        for (header, control) in headers.iter_mut().zip(&mut controls) {
            let header: &mut libc::mmsghdr = header;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        }
        Self { bytes, names, controls, _slices: slices, headers }
    }

    /// Receive what waits, at most [`BATCH`] datagrams; how many came.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for header in &mut self.headers {
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = size_of::<ControlBytes>();
        }
        // SAFETY: the pointers in `headers` lead to live buffers of the lengths they name.
        unsafe { receive_waiting(socket, &mut self.headers) }
    }

    /// Datagram `index` of the last call.
    pub fn datagram(&self, index: usize) -> Datagram<'_> {
        let header = &self.headers[index];
        let length = header.msg_len as usize;
        let is_cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || length >= MAX_FRAME_BYTES;
        let start = index * MAX_FRAME_BYTES;
        Datagram {
            source: from_raw(&self.names[index]),
            realtime_ns: times(&self.controls[index], header.msg_hdr.msg_controllen).realtime_ns,
            bytes: (!is_cut).then(|| &self.bytes[start..start + length]),
        }
    }
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

/// Frames that wait to be sent to one address.
pub struct SendQueue {
    bytes: Vec<u8>,
    /// End of each frame in `bytes`.
    ends: Vec<usize>,
    /// Frames of `ends` that have gone.
    sent: usize,
}

impl SendQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), sent: 0 }
    }

    /// Append a frame that `write` appends to the bytes it is given.
    #[inline]
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Frames that wait.
    pub fn len(&self) -> usize {
        self.ends.len() - self.sent
    }

    /// Send as much as the socket takes; frames and bytes that went. What is left waits for the next
    /// call. An error other than a full buffer drops the frame that it stands for.
    pub fn flush(&mut self, socket: BorrowedFd<'_>, to: SocketAddrV4) -> Flushed {
        let mut flushed = Flushed::default();
        let mut name = to_raw(to);
        while self.sent < self.ends.len() {
            match self.send_batch(socket, &mut name) {
                Ok(count) => {
                    let first = self.start(self.sent);
                    self.sent += count;
                    flushed.packets += count as u64;
                    flushed.bytes += (self.start(self.sent) - first) as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    flushed.is_blocked = true;
                    return flushed;
                }
                Err(_) => {
                    self.sent += 1;
                    flushed.errors += 1;
                }
            }
        }
        self.bytes.clear();
        self.ends.clear();
        self.sent = 0;
        flushed
    }

    fn start(&self, frame: usize) -> usize {
        if frame == 0 { 0 } else { self.ends[frame - 1] }
    }

    fn send_batch(
        &mut self,
        socket: BorrowedFd<'_>,
        name: &mut libc::sockaddr_in,
    ) -> io::Result<usize> {
        let count = (self.ends.len() - self.sent).min(BATCH);
        // SAFETY: all-zero is a valid value of these plain C structures.
        let (mut slices, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for index in 0..count {
            let (start, end) = (self.start(self.sent + index), self.ends[self.sent + index]);
            let bytes = &mut self.bytes[start..end];
            slices[index] =
                libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
            prepare(&mut headers[index], name, &mut slices[index]);
        }
        // SAFETY: `headers[..count]` point to live buffers of the lengths they name, which the
        // kernel only reads and does not keep.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl Default for SendQueue {
    fn default() -> Self {
        Self::new()
    }
}

/// What a call of [`SendQueue::flush`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Frames that went.
    pub packets: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Frames that the kernel refused for good.
    pub errors: u64,
    /// The socket's buffer is full.
    pub is_blocked: bool,
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM))
}

fn prepare(header: &mut libc::mmsghdr, name: &mut libc::sockaddr_in, slice: &mut libc::iovec) {
    header.msg_hdr.msg_name = (name as *mut libc::sockaddr_in).cast();
    header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    header.msg_hdr.msg_iov = slice;
    header.msg_hdr.msg_iovlen = 1;
}

fn to_raw(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn from_raw(name: &libc::sockaddr_in) -> SocketAddrV4 {
    let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
    SocketAddrV4::new(address, u16::from_be(name.sin_port))
}
