//! An open RDMA device with its memory and its completion queue.
#![allow(unsafe_code)]

use super::abi::{
    CompletionChannel, CompletionQueue, Context, DeviceAttributes, DeviceHandle, MemoryRegion,
    PORT_ACTIVE, PortAttributes, ProtectionDomain, WorkCompletion, access, mtu_bytes_of,
};
use super::discovery::{self, Place};
use super::error::VerbsError;
use super::library::{Library, library};
use super::memory::Memory;
use std::ffi::{CStr, c_int};
use std::io;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

/// Longest WRITE; longer messages are several. A power of two, so that it holds whole packets of any
/// path MTU; small enough for the usual limit of locked memory (8 MiB), large enough that a WRITE
/// takes 40 us at 400 Gb/s.
pub const MAX_WRITE_BYTES: u64 = 2 << 20;
/// Completions taken per call.
pub const BATCH: usize = 32;

/// Something of the library's that is given back when it is dropped.
pub struct Owned<T> {
    pointer: NonNull<T>,
    give_back: unsafe extern "C" fn(*mut T) -> c_int,
}

impl<T> Owned<T> {
    /// Take over what a call returned; null is what the system refused.
    pub fn new(
        pointer: *mut T,
        give_back: unsafe extern "C" fn(*mut T) -> c_int,
    ) -> io::Result<Self> {
        let pointer = NonNull::new(pointer).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { pointer, give_back })
    }

    pub fn as_ptr(&self) -> *mut T {
        self.pointer.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the library, and is given back once.
        unsafe { (self.give_back)(self.pointer.as_ptr()) };
    }
}

/// What a device and its port can do, as they said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Requests that wait in one queue of a queue pair.
    pub requests: u32,
    /// Completions that wait in one queue.
    pub completions: u32,
    /// Path MTU of the port.
    pub mtu_bytes: u32,
    /// Longest message.
    pub message_bytes: u32,
}

/// What a device is opened for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Payload of a packet.
    pub mtu_bytes: u32,
}

/// See the module documentation. Fields are dropped in order, users of others first.
pub struct Device {
    region: Owned<MemoryRegion>,
    queue: Owned<CompletionQueue>,
    channel: Owned<CompletionChannel>,
    pub(super) domain: Owned<ProtectionDomain>,
    pub(super) context: Owned<Context>,
    memory: Memory,
    pub(super) library: &'static Library,
    place: Place,
    limits: Limits,
    is_armed: bool,
}

// SAFETY: the library's objects may be used from any thread, and everything that reaches them is
// owned by the device.
unsafe impl Send for Device {}

impl Device {
    /// Open the device that has an address, for so many queue pairs and such packets.
    pub fn open(
        address: Ipv4Addr,
        interface: Option<&str>,
        needs: Needs,
    ) -> Result<Self, VerbsError> {
        let library = library()?;
        let place = discovery::find(Path::new(discovery::CLASS), address, interface)?;
        let context = open_context(library, &place.device)?;
        let limits = probe(library, &context, &place)?;
        check(&place, &limits, needs)?;
        Self::with(library, context, place, limits)
    }

    fn with(
        library: &'static Library,
        context: Owned<Context>,
        place: Place,
        limits: Limits,
    ) -> Result<Self, VerbsError> {
        let name = &place.device.clone();
        let refused =
            |what: &'static str| move |error: io::Error| VerbsError::refused(name, what, &error);
        let memory = Memory::new(write_bytes(&limits) as usize);
        let (start, length) = (memory.address(), memory.length_bytes());
        let rights = access::LOCAL_WRITE | access::REMOTE_WRITE;
        // SAFETY: each pointer that is given came from the library and lives; the memory outlives its
        // region because it is dropped later.
        unsafe {
            let domain = Owned::new((library.alloc_pd)(context.as_ptr()), library.dealloc_pd)
                .map_err(refused("protection domain"))?;
            let channel = (library.create_comp_channel)(context.as_ptr());
            let channel = Owned::new(channel, library.destroy_comp_channel)
                .map_err(refused("completion channel"))?;
            let entries = limits.completions as c_int;
            let queue =
                (library.create_cq)(context.as_ptr(), entries, null_mut(), channel.as_ptr(), 0);
            let queue =
                Owned::new(queue, library.destroy_cq).map_err(refused("completion queue"))?;
            let region = (library.reg_mr)(domain.as_ptr(), start, length, rights);
            let region =
                Owned::new(region, library.dereg_mr).map_err(refused("registered memory"))?;
            let device = Self {
                region,
                queue,
                channel,
                domain,
                context,
                memory,
                library,
                place,
                limits,
                is_armed: false,
            };
            device.make_nonblocking().map_err(refused("completion channel"))?;
            Ok(device)
        }
    }

    fn make_nonblocking(&self) -> io::Result<()> {
        let descriptor = self.raw_descriptor();
        // SAFETY: the descriptor is open.
        let done = unsafe {
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn raw_descriptor(&self) -> c_int {
        // SAFETY: the channel is open.
        unsafe { (*self.channel.as_ptr()).descriptor }
    }

    /// Readable when a completion has come after [`Device::poll`] found none.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel is open for as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.raw_descriptor()) }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What it can do.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Its memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Keys of the memory, for itself and for peers.
    pub fn keys(&self) -> (u32, u32) {
        // SAFETY: the region is registered.
        let region = unsafe { &*self.region.as_ptr() };
        (region.local_key, region.remote_key)
    }

    pub(super) fn completion_queue(&self) -> *mut CompletionQueue {
        self.queue.as_ptr()
    }

    /// Take completions. When there is none, the next one makes the descriptor readable.
    pub fn poll(&mut self, completions: &mut [WorkCompletion; BATCH]) -> usize {
        let count = self.poll_queue(completions);
        if count > 0 || self.is_armed && !self.take_notification() {
            return count;
        }
        self.is_armed = self.request_notification();
        // What came before the request makes no notification.
        self.poll_queue(completions)
    }

    fn poll_queue(&self, completions: &mut [WorkCompletion; BATCH]) -> usize {
        // SAFETY: the context's table is complete, the queue lives, and there is room for a batch.
        let count = unsafe {
            let poll = (*self.context.as_ptr()).operations.poll_cq;
            poll.map_or(0, |poll| {
                poll(self.queue.as_ptr(), BATCH as c_int, completions.as_mut_ptr())
            })
        };
        usize::try_from(count).unwrap_or(0)
    }

    fn request_notification(&self) -> bool {
        // SAFETY: as for polling.
        unsafe {
            let request = (*self.context.as_ptr()).operations.req_notify_cq;
            request.is_some_and(|request| request(self.queue.as_ptr(), 0) == 0)
        }
    }

    /// Take the notification that was asked for; false if it has not come.
    fn take_notification(&self) -> bool {
        let (mut queue, mut context) = (null_mut(), null_mut());
        // SAFETY: the channel is open and does not block; the queue of a notification is its own.
        unsafe {
            let got =
                (self.library.get_cq_event)(self.channel.as_ptr(), &mut queue, &mut context) == 0;
            if got {
                (self.library.ack_cq_events)(queue, 1);
            }
            got
        }
    }
}

/// Longest WRITE of a device.
pub fn write_bytes(limits: &Limits) -> u64 {
    let message_bytes = u64::from(limits.message_bytes.max(1));
    MAX_WRITE_BYTES.min(1 << message_bytes.ilog2())
}

fn open_context(library: &Library, name: &str) -> Result<Owned<Context>, VerbsError> {
    let mut count = 0;
    // SAFETY: the list ends with a null, is used before it is given back, and an open device does not
    // need it.
    unsafe {
        let list = (library.get_device_list)(&mut count);
        if list.is_null() {
            let error = io::Error::last_os_error();
            return Err(VerbsError::refused(name, "list of devices", &error));
        }
        let found = (0..count as usize)
            .map(|index| *list.add(index))
            .find(|&device| device_name(library, device) == name);
        let opened = found.map(|device| {
            let context = Owned::new((library.open_device)(device), library.close_device);
            context.map_err(|error| VerbsError::refused(name, "cannot be opened", &error))
        });
        (library.free_device_list)(list);
        opened.unwrap_or_else(|| Err(unusable(name)))
    }
}

fn unusable(name: &str) -> VerbsError {
    VerbsError::new(
        format!("{name}: the library does not offer the device"),
        "modprobe ib_uverbs, and install the provider of the adapter: apt install ibverbs-providers",
    )
}

/// # Safety
/// The device is one of a list that is not given back.
unsafe fn device_name(library: &Library, device: *mut DeviceHandle) -> String {
    // SAFETY: as the caller promises; names end with a zero.
    unsafe { CStr::from_ptr((library.get_device_name)(device)).to_string_lossy().into_owned() }
}

fn probe(library: &Library, context: &Owned<Context>, place: &Place) -> Result<Limits, VerbsError> {
    // SAFETY: zeros are legal values of both structures, which the calls fill.
    let (device, port, failures) = unsafe {
        let (mut device, mut port): (DeviceAttributes, PortAttributes) = (zeroed(), zeroed());
        let failures = [
            (library.query_device)(context.as_ptr(), &mut device),
            (library.query_port)(context.as_ptr(), place.port, &mut port),
        ];
        (device, port, failures)
    };
    if let Some(&error) = failures.iter().find(|&&error| error != 0) {
        let error = io::Error::from_raw_os_error(error);
        return Err(VerbsError::refused(&place.device, "its limits", &error));
    }
    if port.state != PORT_ACTIVE {
        return Err(VerbsError::new(
            format!("{}: port {} is not active", place.device, place.port),
            format!("bring its link up: ip link set {} up", place.interface),
        ));
    }
    let positive = |value: c_int| u32::try_from(value).unwrap_or(0);
    Ok(Limits {
        queue_pairs: positive(device.max_qp),
        requests: positive(device.max_qp_wr),
        completions: positive(device.max_cqe),
        mtu_bytes: mtu_bytes_of(port.active_mtu),
        message_bytes: port.max_message_bytes,
    })
}

fn check(place: &Place, limits: &Limits, needs: Needs) -> Result<(), VerbsError> {
    let Place { device, interface, .. } = place;
    if limits.mtu_bytes < needs.mtu_bytes {
        let (active, needed) = (limits.mtu_bytes, needs.mtu_bytes);
        return Err(VerbsError::new(
            format!("{device}: the path MTU of its port is {active} bytes, {needed} are needed"),
            format!(
                "raise the MTU of the interface (ip link set {interface} mtu {}), or choose a smaller \
                 transport.mtu_bytes",
                needed + 104
            ),
        ));
    }
    if limits.queue_pairs < needs.queue_pairs {
        return Err(VerbsError::new(
            format!(
                "{device}: has {} queue pairs, {} are needed",
                limits.queue_pairs, needs.queue_pairs
            ),
            "lower transport.qps_per_peer",
        ));
    }
    if limits.completions < 4 * needs.queue_pairs {
        return Err(VerbsError::new(
            format!(
                "{device}: a completion queue holds {}, too few for {} queue pairs",
                limits.completions, needs.queue_pairs
            ),
            "lower transport.qps_per_peer",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        queue_pairs: 100,
        requests: 64,
        completions: 4096,
        mtu_bytes: 1024,
        message_bytes: 1 << 30,
    };

    fn refusal(needs: Needs) -> String {
        let place =
            Place { device: "rxe0".into(), port: 1, gid_index: 1, interface: "eth0".into() };
        check(&place, &LIMITS, needs).expect_err("too much").to_string()
    }

    #[test]
    fn what_a_device_lacks_is_named_with_a_remedy() {
        let mtu = refusal(Needs { queue_pairs: 1, mtu_bytes: 4096 });
        assert!(mtu.contains("is 1024 bytes, 4096 are needed"), "{mtu}");
        assert!(mtu.contains("ip link set eth0 mtu 4200"), "{mtu}");
        let pairs = refusal(Needs { queue_pairs: 101, mtu_bytes: 1024 });
        assert!(pairs.contains("has 100 queue pairs, 101 are needed"), "{pairs}");
    }

    #[test]
    fn writes_are_as_long_as_the_device_allows() {
        assert_eq!(write_bytes(&LIMITS), MAX_WRITE_BYTES);
        assert_eq!(write_bytes(&Limits { message_bytes: 0x10_0001, ..LIMITS }), 1 << 20);
    }
}
