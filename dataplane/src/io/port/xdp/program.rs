//! The XDP program that hands RoCEv2 frames to the socket of their queue with the time at which it
//! saw them, its map, and its attachment.
//!
//! Source of numbers and layouts: Linux `include/uapi/linux/bpf.h`. All of it goes with its
//! descriptors, so that nothing is left on an interface when the process ends, however it ends.
#![allow(unsafe_code)]

use super::super::XdpMode;
use crate::roce::layout::{HEADERS_BYTES, ROCE_PORT};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// The program understands frames in several parts.
const HAS_FRAGMENTS: u32 = 1 << 5;
const KTIME_GET_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const ADJUST_META: i32 = 54;
const PASS: i32 = 2;
/// Queues that a map has a place for.
pub const MAX_QUEUES: u32 = 64;
/// What the program writes before a frame: CLOCK_MONOTONIC in nanoseconds, and a mark. A driver that
/// has no room for it leaves both out.
pub const META_BYTES: usize = 16;
/// Tells a time from what else may stand before a frame.
pub const MARK: u64 = 0x7277_7469_6D65_6E73;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver of the interface.
    Native,
    /// In the kernel's common receive path.
    Generic,
}

impl From<Mode> for XdpMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Native => XdpMode::Native,
            Mode::Generic => XdpMode::Generic,
        }
    }
}

impl Mode {
    /// Source: `XDP_FLAGS_DRV_MODE` and `XDP_FLAGS_SKB_MODE`, `include/uapi/linux/if_link.h`.
    fn flags(self) -> u32 {
        match self {
            Mode::Native => 1 << 2,
            Mode::Generic => 1 << 1,
        }
    }
}

/// The program on an interface; dropping it takes it off.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
    _program: OwnedFd,
    map: OwnedFd,
    mode: Mode,
}

impl Attached {
    /// Load the program for an address, and attach it to the interface with that index.
    pub fn new(address: Ipv4Addr, interface: u32, mode: Mode) -> io::Result<Self> {
        let map = create_map()?;
        let program = load(&instructions(address, map.as_raw_fd()))?;
        // prog_fd, target_ifindex, attach_type, flags
        let attributes = [program.as_raw_fd() as u32, interface, ATTACH_XDP, mode.flags()];
        let link = descriptor(LINK_CREATE, &words(&attributes))?;
        Ok(Self { _link: link, _program: program, map, mode })
    }

    /// Where the program runs.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Hand the frames of a queue to a socket.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = socket.as_raw_fd() as u32;
        let mut attributes = Vec::new();
        attributes.extend_from_slice(&(self.map.as_raw_fd() as u64).to_ne_bytes());
        for place in [&raw const queue, &raw const value] {
            attributes.extend_from_slice(&(place as u64).to_ne_bytes());
        }
        attributes.extend_from_slice(&0u64.to_ne_bytes());
        call(MAP_UPDATE, &attributes).map(|_| ())
    }
}

fn create_map() -> io::Result<OwnedFd> {
    // map_type, key_size, value_size, max_entries
    descriptor(MAP_CREATE, &words(&[MAP_TYPE_XSKMAP, 4, 4, MAX_QUEUES]))
}

fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    let licence = c"Apache-2.0";
    let mut attributes = words(&[PROGRAM_TYPE_XDP, instructions.len() as u32]);
    for pointer in [instructions.as_ptr() as u64, licence.as_ptr() as u64] {
        attributes.extend_from_slice(&pointer.to_ne_bytes());
    }
    // log_level, log_size, log_buf, kern_version, prog_flags
    attributes.extend_from_slice(&[0; 16]);
    attributes.extend_from_slice(&words(&[0, HAS_FRAGMENTS]));
    descriptor(PROGRAM_LOAD, &attributes)
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn descriptor(command: libc::c_long, attributes: &[u8]) -> io::Result<OwnedFd> {
    let made = call(command, attributes)?;
    // SAFETY: these commands return a descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

fn call(command: libc::c_long, attributes: &[u8]) -> io::Result<libc::c_int> {
    let length = attributes.len();
    // SAFETY: `attributes` has the given length; what it points to is alive during the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// The program: RoCEv2 for an address goes to the socket of its queue, all else on its way.
///
/// ```text
/// r6 = context; r2 = data; r3 = data_end
/// if data + 42 > data_end: pass
/// if type != IPv4 or version and length != 0x45 or protocol != UDP: pass
/// if destination != address or UDP port != 4791: pass
/// if adjust_meta(context, -16) == 0:
///     r2 = data; r7 = data_meta
///     if r7 + 16 <= r2: r7[0] = ktime_get_ns(); r7[1] = MARK
/// return redirect_map(map, queue, PASS)
/// ```
fn instructions(address: Ipv4Addr, map: libc::c_int) -> Vec<u64> {
    let network = |bytes: &[u8]| {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        i32::from_ne_bytes(whole)
    };
    let checks = [
        (LOAD_HALF, 12, network(&[8, 0])),
        (LOAD_BYTE, 14, 0x45),
        (LOAD_BYTE, 23, libc::IPPROTO_UDP),
        (LOAD_WORD, 30, network(&address.octets())),
        (LOAD_HALF, 36, network(&ROCE_PORT.to_be_bytes())),
    ];
    let to_pass = |from: usize| (PASS_AT - from - 1) as i16;
    let mut program = vec![
        encoded(MOVE_REGISTER, 6, 1, 0, 0),
        encoded(LOAD_WORD, 2, 1, 0, 0),
        encoded(LOAD_WORD, 3, 1, 4, 0),
        encoded(MOVE_REGISTER, 4, 2, 0, 0),
        encoded(ADD_VALUE, 4, 0, 0, HEADERS_BYTES as i32),
        encoded(JUMP_GREATER_REGISTER, 4, 3, to_pass(5), 0),
    ];
    for (load, offset, value) in checks {
        program.push(encoded(load, 4, 2, offset, 0));
        // A 32-bit comparison, since the address may have its highest bit set.
        program.push(encoded(JUMP32_UNEQUAL_VALUE, 4, 0, to_pass(program.len()), value));
    }
    program.extend(stamping());
    program.extend([
        encoded(LOAD_WIDE, 1, 1, 0, map),
        0,
        encoded(LOAD_WORD, 2, 6, 16, 0),
        encoded(MOVE_VALUE, 3, 0, 0, PASS),
        encoded(CALL, 0, 0, 0, REDIRECT_MAP),
        encoded(EXIT, 0, 0, 0, 0),
        encoded(MOVE_VALUE, 0, 0, 0, PASS),
        encoded(EXIT, 0, 0, 0, 0),
    ]);
    program
}

/// Write the time before the frame that `r6` describes, if there is room.
fn stamping() -> [u64; STAMPING] {
    let meta_bytes = META_BYTES as i32;
    let (low, high) = (MARK as u32 as i32, (MARK >> 32) as u32 as i32);
    let to_end = |from: usize| (STAMPING - from - 1) as i16;
    [
        encoded(MOVE_REGISTER, 1, 6, 0, 0),
        encoded(MOVE_VALUE, 2, 0, 0, -meta_bytes),
        encoded(CALL, 0, 0, 0, ADJUST_META),
        encoded(JUMP_UNEQUAL_VALUE, 0, 0, to_end(3), 0),
        encoded(LOAD_WORD, 2, 6, 0, 0),
        encoded(LOAD_WORD, 7, 6, 8, 0),
        encoded(MOVE_REGISTER, 3, 7, 0, 0),
        encoded(ADD_VALUE, 3, 0, 0, meta_bytes),
        encoded(JUMP_GREATER_REGISTER, 3, 2, to_end(8), 0),
        encoded(CALL, 0, 0, 0, KTIME_GET_NS),
        encoded(STORE_DOUBLE, 7, 0, 0, 0),
        encoded(LOAD_WIDE, 1, 0, 0, low),
        encoded(0, 0, 0, 0, high),
        encoded(STORE_DOUBLE, 7, 1, 8, 0),
    ]
}

/// Index of the first instruction of [`stamping`], how many it has, and the index of the instruction
/// that lets a frame pass.
const STAMPING_AT: usize = 16;
const STAMPING: usize = 14;
const PASS_AT: usize = STAMPING_AT + STAMPING + 6;

const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const LOAD_WIDE: u8 = 0x18;
const MOVE_REGISTER: u8 = 0xBF;
const MOVE_VALUE: u8 = 0xB7;
const ADD_VALUE: u8 = 0x07;
const JUMP_GREATER_REGISTER: u8 = 0x2D;
const JUMP_UNEQUAL_VALUE: u8 = 0x55;
const JUMP32_UNEQUAL_VALUE: u8 = 0x56;
const STORE_DOUBLE: u8 = 0x7B;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// One `struct bpf_insn`.
fn encoded(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let [low, high] = offset.to_ne_bytes();
    let [a, b, c, d] = value.to_ne_bytes();
    u64::from_ne_bytes([code, from << 4 | to, low, high, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_rocev2_jumps_to_the_instruction_that_lets_it_pass() {
        let program = instructions(Ipv4Addr::new(198, 18, 0, 1), 3);
        assert_eq!(program[PASS_AT], encoded(MOVE_VALUE, 0, 0, 0, PASS));
        assert_eq!(program.len(), PASS_AT + 2);
        assert_eq!(program[STAMPING_AT..STAMPING_AT + STAMPING], stamping());
        for (index, instruction) in program.iter().enumerate().take(STAMPING_AT) {
            let bytes = instruction.to_ne_bytes();
            if [JUMP_GREATER_REGISTER, JUMP32_UNEQUAL_VALUE].contains(&bytes[0]) {
                let offset = i16::from_ne_bytes([bytes[2], bytes[3]]);
                assert_eq!(index + 1 + offset as usize, PASS_AT);
            }
        }
    }

    #[test]
    fn a_frame_without_room_for_the_time_is_handed_on_without() {
        for (index, instruction) in stamping().iter().enumerate() {
            let bytes = instruction.to_ne_bytes();
            if [JUMP_GREATER_REGISTER, JUMP_UNEQUAL_VALUE].contains(&bytes[0]) {
                let offset = i16::from_ne_bytes([bytes[2], bytes[3]]);
                assert_eq!(index + 1 + offset as usize, STAMPING);
            }
        }
    }
}
