//! libibverbs, opened when it is first needed: where it is absent nothing else misses it.
#![allow(unsafe_code)]

use super::abi::{
    CompletionChannel, CompletionQueue, Context, DeviceAttributes, DeviceHandle, InitialAttributes,
    MemoryRegion, PortAttributes, ProtectionDomain, QueuePairAttributes, QueuePairHandle,
};
use super::error::VerbsError;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute_copy;
use std::sync::OnceLock;

const NAME: &CStr = c"libibverbs.so.1";
const INSTALL: &str = "install it: apt install libibverbs1 ibverbs-providers (rdma-core elsewhere)";

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// Functions of the library, named as there without the prefix.
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            fn load(handle: *mut c_void) -> Result<Self, VerbsError> {
                Ok(Self {
                    $($name: {
                        let found = symbol(handle, $symbol)?;
                        // SAFETY: the header declares the symbol as a function of this type, and
                        // pointers to functions are as large as those to data.
                        unsafe { transmute_copy(&found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_device_list = c"ibv_get_device_list" (*mut c_int) -> *mut *mut DeviceHandle;
    free_device_list = c"ibv_free_device_list" (*mut *mut DeviceHandle) -> ();
    get_device_name = c"ibv_get_device_name" (*mut DeviceHandle) -> *const c_char;
    open_device = c"ibv_open_device" (*mut DeviceHandle) -> *mut Context;
    close_device = c"ibv_close_device" (*mut Context) -> c_int;
    query_device = c"ibv_query_device" (*mut Context, *mut DeviceAttributes) -> c_int;
    query_port = c"ibv_query_port" (*mut Context, u8, *mut PortAttributes) -> c_int;
    alloc_pd = c"ibv_alloc_pd" (*mut Context) -> *mut ProtectionDomain;
    dealloc_pd = c"ibv_dealloc_pd" (*mut ProtectionDomain) -> c_int;
    reg_mr = c"ibv_reg_mr" (*mut ProtectionDomain, *mut c_void, usize, c_int) -> *mut MemoryRegion;
    dereg_mr = c"ibv_dereg_mr" (*mut MemoryRegion) -> c_int;
    create_comp_channel = c"ibv_create_comp_channel" (*mut Context) -> *mut CompletionChannel;
    destroy_comp_channel = c"ibv_destroy_comp_channel" (*mut CompletionChannel) -> c_int;
    create_cq = c"ibv_create_cq" (*mut Context, c_int, *mut c_void, *mut CompletionChannel, c_int)
        -> *mut CompletionQueue;
    destroy_cq = c"ibv_destroy_cq" (*mut CompletionQueue) -> c_int;
    get_cq_event = c"ibv_get_cq_event"
        (*mut CompletionChannel, *mut *mut CompletionQueue, *mut *mut c_void) -> c_int;
    ack_cq_events = c"ibv_ack_cq_events" (*mut CompletionQueue, c_uint) -> ();
    create_qp = c"ibv_create_qp" (*mut ProtectionDomain, *mut InitialAttributes)
        -> *mut QueuePairHandle;
    modify_qp = c"ibv_modify_qp" (*mut QueuePairHandle, *mut QueuePairAttributes, c_int) -> c_int;
    destroy_qp = c"ibv_destroy_qp" (*mut QueuePairHandle) -> c_int;
}

/// The library of this process, opened once. The error says how to install it; what has been installed
/// since is found by the next call.
pub fn library() -> Result<&'static Library, VerbsError> {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let opened = open(NAME).and_then(Library::load)?;
    Ok(LIBRARY.get_or_init(|| opened))
}

/// Open a library, for as long as the process lives.
fn open(name: &CStr) -> Result<*mut c_void, VerbsError> {
    // SAFETY: the name ends with a zero; constructors of a library of the system may run.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(VerbsError::new(last_error(), INSTALL)) } else { Ok(handle) }
}

fn symbol(handle: *mut c_void, name: &CStr) -> Result<*mut c_void, VerbsError> {
    // SAFETY: the handle is that of an open library, and the name ends with a zero.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    let name = name.to_string_lossy();
    let what = || format!("libibverbs.so.1 has no {name}: it is older than version 1.1");
    if found.is_null() { Err(VerbsError::new(what(), INSTALL)) } else { Ok(found) }
}

fn last_error() -> String {
    // SAFETY: the text, if there is one, ends with a zero and stays until the next call of this
    // thread.
    let text = unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    text.unwrap_or_else(|| "libibverbs.so.1 cannot be opened".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_library_is_an_error_that_says_what_to_install() {
        let error = open(c"libibverbs-that-is-nowhere.so.1").expect_err("there is none");
        let text = error.to_string();
        assert!(text.contains("libibverbs-that-is-nowhere"), "{text}");
        assert!(text.contains("apt install libibverbs1 ibverbs-providers"), "{text}");
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let libc = open(c"libc.so.6").expect("the C library");
        let error = Library::load(libc).err().expect("no verbs in it");
        assert!(error.to_string().contains("ibv_get_device_list"), "{error}");
    }
}
