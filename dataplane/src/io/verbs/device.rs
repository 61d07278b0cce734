//! An open RDMA device with its memory and its completion queue.
#![allow(unsafe_code)]

use super::abi::{
    CompletionChannel, CompletionQueue, Context, DeviceHandle, ProtectionDomain, WorkCompletion,
    access,
};
use super::discovery::{self, Place};
use super::error::VerbsError;
use super::library::{Library, library};
use super::limits::{Limits, Needs, check, depth, probe, write_bytes};
use super::memory::{Memory, Registered};
use std::ffi::{CStr, c_int};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

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

/// See the module documentation. Fields are dropped in order, users of others first.
pub struct Device {
    registered: Registered,
    queue: Owned<CompletionQueue>,
    channel: Owned<CompletionChannel>,
    pub(super) domain: Owned<ProtectionDomain>,
    pub(super) context: Owned<Context>,
    pub(super) library: &'static Library,
    place: Place,
    limits: Limits,
    depth: u32,
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
        let limits = probe(library, context.as_ptr(), &place)?;
        check(&place, &limits, needs)?;
        Self::with(library, context, place, limits, needs)
    }

    fn with(
        library: &'static Library,
        context: Owned<Context>,
        place: Place,
        limits: Limits,
        needs: Needs,
    ) -> Result<Self, VerbsError> {
        let name = &place.device.clone();
        let refused =
            |what: &'static str| move |error: io::Error| VerbsError::refused(name, what, &error);
        let memory = Memory::new(write_bytes(&limits) as usize);
        let (start, length) = (memory.address(), memory.length_bytes());
        let rights = access::LOCAL_WRITE | access::REMOTE_WRITE;
        // SAFETY: each pointer that is given came from the library and lives; the memory outlives its
        // region, which has it.
        unsafe {
            let domain = Owned::new((library.alloc_pd)(context.as_ptr()), library.dealloc_pd)
                .map_err(refused("protection domain"))?;
            let channel = (library.create_comp_channel)(context.as_ptr());
            let channel = Owned::new(channel, library.destroy_comp_channel)
                .map_err(refused("completion channel"))?;
            let depth = depth(&limits, needs);
            let entries = (2 * depth * needs.queue_pairs.max(1)) as c_int;
            let queue =
                (library.create_cq)(context.as_ptr(), entries, null_mut(), channel.as_ptr(), 0);
            let queue =
                Owned::new(queue, library.destroy_cq).map_err(refused("completion queue"))?;
            let region = (library.reg_mr)(domain.as_ptr(), start, length, rights);
            let registered = Registered::new(memory, region, library.dereg_mr)
                .map_err(refused("registered memory"))?;
            let device = Self {
                registered,
                queue,
                channel,
                domain,
                context,
                library,
                place,
                limits,
                depth,
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

    /// Sends, and as many receives, that each queue pair may have posted.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Its memory.
    pub fn memory(&self) -> &Memory {
        self.registered.memory()
    }

    /// Keys of the memory, for itself and for peers.
    pub fn keys(&self) -> (u32, u32) {
        self.registered.keys()
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
