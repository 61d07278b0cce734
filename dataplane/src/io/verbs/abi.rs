//! The binary interface of libibverbs: the structures and numbers that are used, and no more.
//!
//! Source: rdma-core, `libibverbs/verbs.h`; the interface of `libibverbs.so.1` has been the same since
//! version 1.1. A test compares sizes and offsets with the header where that is installed.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `struct ibv_device`: only pointed to.
#[repr(C)]
pub struct DeviceHandle {
    _private: [u8; 0],
}

/// `struct ibv_pd`: only pointed to.
#[repr(C)]
pub struct ProtectionDomain {
    _private: [u8; 0],
}

/// `struct ibv_cq`: only pointed to.
#[repr(C)]
pub struct CompletionQueue {
    _private: [u8; 0],
}

/// The first fields of `struct ibv_context`.
#[repr(C)]
pub struct Context {
    pub device: *mut DeviceHandle,
    pub operations: Operations,
    pub command_descriptor: c_int,
    pub event_descriptor: c_int,
}

/// `struct ibv_context_ops`: what a provider does in user space.
#[repr(C)]
pub struct Operations {
    _before_poll: [*mut c_void; 11],
    pub poll_cq: Option<PollCq>,
    pub req_notify_cq: Option<RequestNotification>,
    _before_post: [*mut c_void; 12],
    pub post_send: Option<PostSend>,
    pub post_recv: Option<PostReceive>,
    _rest: [*mut c_void; 5],
}

pub type PollCq = unsafe extern "C" fn(*mut CompletionQueue, c_int, *mut WorkCompletion) -> c_int;
pub type RequestNotification = unsafe extern "C" fn(*mut CompletionQueue, c_int) -> c_int;
pub type PostSend =
    unsafe extern "C" fn(*mut QueuePairHandle, *mut SendRequest, *mut *mut SendRequest) -> c_int;
pub type PostReceive = unsafe extern "C" fn(
    *mut QueuePairHandle,
    *mut ReceiveRequest,
    *mut *mut ReceiveRequest,
) -> c_int;

/// The first fields of `struct ibv_comp_channel`.
#[repr(C)]
pub struct CompletionChannel {
    pub context: *mut Context,
    pub descriptor: c_int,
}

/// `struct ibv_mr`.
#[repr(C)]
pub struct MemoryRegion {
    pub context: *mut Context,
    pub domain: *mut ProtectionDomain,
    pub address: *mut c_void,
    pub length: usize,
    pub handle: u32,
    pub local_key: u32,
    pub remote_key: u32,
}

/// The first fields of `struct ibv_qp`.
#[repr(C)]
pub struct QueuePairHandle {
    pub context: *mut Context,
    pub qp_context: *mut c_void,
    pub domain: *mut ProtectionDomain,
    pub send_queue: *mut CompletionQueue,
    pub receive_queue: *mut CompletionQueue,
    pub shared_receive_queue: *mut c_void,
    pub handle: u32,
    pub number: u32,
}

/// `struct ibv_device_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceAttributes {
    pub firmware_version: [c_char; 64],
    pub node_guid: u64,
    pub system_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hardware_version: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub capability_flags: c_uint,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    pub rest: [c_int; 22],
    pub max_pkeys: u16,
    pub local_ack_delay: u8,
    pub ports: u8,
}

/// `struct ibv_port_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PortAttributes {
    pub state: c_uint,
    pub max_mtu: c_uint,
    pub active_mtu: c_uint,
    pub gid_entries: c_int,
    pub capability_flags: u32,
    pub max_message_bytes: u32,
    pub bad_pkey_counter: u32,
    pub qkey_violations: u32,
    pub pkey_entries: u16,
    pub lid: u16,
    pub subnet_manager_lid: u16,
    pub lid_mask: u8,
    pub max_virtual_lanes: u8,
    pub subnet_manager_level: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub physical_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub capability_flags_2: u16,
}

/// `struct ibv_global_route`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GlobalRoute {
    /// `union ibv_gid`, of which the alignment is that of its words.
    pub destination_gid: Gid,
    pub flow_label: u32,
    pub source_gid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

/// `union ibv_gid`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Gid(pub [u8; 16]);

/// `struct ibv_ah_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AddressVector {
    pub route: GlobalRoute,
    pub destination_lid: u16,
    pub service_level: u8,
    pub source_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port: u8,
}

/// `struct ibv_qp_cap`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Capacity {
    pub sends: u32,
    pub receives: u32,
    pub send_elements: u32,
    pub receive_elements: u32,
    pub inline_bytes: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub struct InitialAttributes {
    pub qp_context: *mut c_void,
    pub send_queue: *mut CompletionQueue,
    pub receive_queue: *mut CompletionQueue,
    pub shared_receive_queue: *mut c_void,
    pub capacity: Capacity,
    pub kind: c_uint,
    pub signals_all: c_int,
}

/// `struct ibv_qp_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QueuePairAttributes {
    pub state: c_uint,
    pub current_state: c_uint,
    pub path_mtu: c_uint,
    pub path_migration: c_uint,
    pub queue_key: u32,
    pub receive_psn: u32,
    pub send_psn: u32,
    pub destination_qp: u32,
    pub access: c_uint,
    pub capacity: Capacity,
    pub path: AddressVector,
    pub alternate_path: AddressVector,
    pub pkey_index: u16,
    pub alternate_pkey_index: u16,
    pub notifies_drained: u8,
    pub is_draining: u8,
    pub max_reads: u8,
    pub max_answered_reads: u8,
    pub not_ready_timer: u8,
    pub port: u8,
    pub timeout: u8,
    pub retries: u8,
    pub not_ready_retries: u8,
    pub alternate_port: u8,
    pub alternate_timeout: u8,
    pub rate_limit: u32,
}

/// `struct ibv_sge`.
#[repr(C)]
pub struct Element {
    pub address: u64,
    pub length: u32,
    pub local_key: u32,
}

/// `struct ibv_send_wr`, as an RDMA WRITE uses it.
#[repr(C)]
pub struct SendRequest {
    pub id: u64,
    pub next: *mut SendRequest,
    pub elements: *mut Element,
    pub element_count: c_int,
    pub opcode: c_uint,
    pub flags: c_uint,
    /// Network byte order.
    pub immediate: u32,
    pub remote_address: u64,
    pub remote_key: u32,
    pub _rest: [u32; 19],
}

/// `struct ibv_recv_wr`.
#[repr(C)]
pub struct ReceiveRequest {
    pub id: u64,
    pub next: *mut ReceiveRequest,
    pub elements: *mut Element,
    pub element_count: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkCompletion {
    pub id: u64,
    pub status: c_uint,
    pub opcode: c_uint,
    pub vendor_error: u32,
    pub length: u32,
    /// Network byte order.
    pub immediate: u32,
    pub qp: u32,
    pub source_qp: u32,
    pub flags: c_uint,
    pub pkey_index: u16,
    pub source_lid: u16,
    pub service_level: u8,
    pub path_bits: u8,
}

/// `IBV_QPT_RC`.
pub const RELIABLE_CONNECTION: c_uint = 2;
/// `IBV_PORT_ACTIVE`.
pub const PORT_ACTIVE: c_uint = 4;

/// `enum ibv_qp_state`.
pub mod state {
    use std::ffi::c_uint;
    pub const INIT: c_uint = 1;
    pub const READY_TO_RECEIVE: c_uint = 2;
    pub const READY_TO_SEND: c_uint = 3;
    pub const ERROR: c_uint = 6;
}

/// `enum ibv_qp_attr_mask`.
pub mod mask {
    use std::ffi::c_int;
    pub const STATE: c_int = 1 << 0;
    pub const ACCESS: c_int = 1 << 3;
    pub const PKEY_INDEX: c_int = 1 << 4;
    pub const PORT: c_int = 1 << 5;
    pub const PATH: c_int = 1 << 7;
    pub const PATH_MTU: c_int = 1 << 8;
    pub const TIMEOUT: c_int = 1 << 9;
    pub const RETRIES: c_int = 1 << 10;
    pub const NOT_READY_RETRIES: c_int = 1 << 11;
    pub const RECEIVE_PSN: c_int = 1 << 12;
    pub const MAX_READS: c_int = 1 << 13;
    pub const NOT_READY_TIMER: c_int = 1 << 15;
    pub const SEND_PSN: c_int = 1 << 16;
    pub const MAX_ANSWERED_READS: c_int = 1 << 17;
    pub const DESTINATION_QP: c_int = 1 << 20;
}

/// `enum ibv_access_flags`.
pub mod access {
    use std::ffi::c_int;
    pub const LOCAL_WRITE: c_int = 1;
    pub const REMOTE_WRITE: c_int = 1 << 1;
}

/// `enum ibv_wr_opcode`.
pub mod opcode {
    use std::ffi::c_uint;
    pub const WRITE: c_uint = 0;
    pub const WRITE_WITH_IMMEDIATE: c_uint = 1;
}

/// `IBV_SEND_SIGNALED`.
pub const SIGNALED: c_uint = 1 << 1;

/// `enum ibv_wc_status`.
pub mod status {
    use std::ffi::c_uint;
    pub const SUCCESS: c_uint = 0;
    pub const FLUSHED: c_uint = 5;
    pub const REMOTE_INVALID_REQUEST: c_uint = 9;
    pub const REMOTE_ACCESS: c_uint = 10;
    pub const REMOTE_OPERATION: c_uint = 11;
    pub const RETRIES_EXCEEDED: c_uint = 12;
    pub const NOT_READY_RETRIES_EXCEEDED: c_uint = 13;
    pub const GENERAL_ERROR: c_uint = 21;
}

/// `enum ibv_mtu` of a path MTU in bytes; `None` if there is none.
pub fn mtu_code(mtu_bytes: u32) -> Option<c_uint> {
    (1..=5).find(|&code| mtu_bytes_of(code) == mtu_bytes)
}

/// Bytes of an `enum ibv_mtu`.
pub fn mtu_bytes_of(code: c_uint) -> u32 {
    128 << code.min(5)
}

#[cfg(test)]
mod tests;
