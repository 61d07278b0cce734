//! The shared packet buffer of a switch: what may be stored, and when an ingress must pause.
//!
//! * A lossy packet is stored while its egress queue stays within `alpha` times the free buffer.
//! * A lossless packet is stored always: in the shared buffer until its ingress was told to pause,
//!   in that ingress's headroom afterwards. Only a full headroom drops it, which means that the
//!   headroom is too small for the link.
//! * Before either, a packet is stored in what is reserved for its egress queue (lossy) or its ingress
//!   (lossless), for as long as that has room. Thresholds look at what is held beyond. Source: SONiC,
//!   `BUFFER_PROFILE.size`; SAI, `SAI_BUFFER_PROFILE_ATTR_RESERVED_BUFFER_SIZE`.
//!
//! What leaves frees headroom first, then shared buffer, and the reservation last.
//!
//! The headrooms may share a pool: then one takes as much as it may have alone, for as long as the
//! pool has it, and what the pool saves is shared buffer. A packet is never split between the parts.
//! Source: SONiC, "Shared headroom pool design": the pool is the sum of all headrooms over an
//! over-subscription ratio, and a full one drops at ingress.
//!
//! An ingress is a port and a priority. It pauses at its threshold, fixed or `alpha` times the free
//! buffer, and resumes when its headroom is empty and it holds `xon_offset_bytes` less than the
//! threshold, or nothing. Source of the dynamic threshold: Choudhury and Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998.

use super::PRIORITIES;
use crate::config::SwitchConfig;

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Stored.
    Stored,
    /// Stored; its ingress must pause from now on.
    StoredPause,
    /// Dropped: the queue has no more share of the buffer.
    Dropped,
    /// Dropped although lossless: the headroom is full.
    HeadroomExceeded,
}

/// How one priority uses the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Policy {
    lossless: bool,
    alpha: f64,
    xoff_bytes: Option<u64>,
    xon_offset_bytes: u64,
    headroom_bytes: u64,
    reserved_bytes: u64,
}

/// Where a packet comes in and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Port that it came in at.
    pub ingress_port: u16,
    /// Port that it leaves from.
    pub egress_port: u16,
    /// Its priority.
    pub priority: u8,
}

/// What an ingress of a lossless priority, or an egress queue of a lossy one, holds.
#[derive(Clone, Copy, Debug, Default)]
struct Holder {
    reserved_bytes: u64,
    shared_bytes: u64,
    headroom_bytes: u64,
    paused: bool,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    shared_bytes: u64,
    /// What all headrooms together may hold.
    headroom_pool_bytes: u64,
    policies: [Policy; PRIORITIES],
    /// By port and priority.
    holders: Vec<[Holder; PRIORITIES]>,
    reserved_used_bytes: u64,
    shared_used_bytes: u64,
    headroom_used_bytes: u64,
    max_used_bytes: u64,
}

impl SharedBuffer {
    /// An empty buffer.
    pub fn new(config: &SwitchConfig) -> Self {
        let mut policies = [Policy::default(); PRIORITIES];
        for (policy, priority) in policies.iter_mut().zip(&config.priorities) {
            *policy = Policy {
                lossless: priority.lossless,
                alpha: priority.dynamic_threshold_alpha.unwrap_or(config.dynamic_threshold_alpha),
                xoff_bytes: priority.xoff_bytes,
                xon_offset_bytes: priority.xon_offset_bytes,
                headroom_bytes: priority.headroom_bytes,
                reserved_bytes: priority.reserved_bytes,
            };
        }
        Self {
            shared_bytes: config.buffer_bytes,
            headroom_pool_bytes: config.headroom_pool_bytes.unwrap_or(u64::MAX),
            policies,
            holders: vec![Default::default(); usize::from(config.ports)],
            reserved_used_bytes: 0,
            shared_used_bytes: 0,
            headroom_used_bytes: 0,
            max_used_bytes: 0,
        }
    }

    /// Store a packet, if it may be.
    #[inline]
    pub fn admit(&mut self, passage: Passage, bytes: u32) -> Verdict {
        let bytes = u64::from(bytes);
        let priority = passage.priority;
        let port = self.holding_port(passage);
        let verdict = if self.reserve(port, priority, bytes) {
            Verdict::Stored
        } else if self.is_lossless(priority) {
            self.admit_lossless(port, priority, bytes)
        } else {
            self.admit_lossy(port, priority, bytes)
        };
        self.max_used_bytes = self.max_used_bytes.max(self.used_bytes());
        verdict
    }

    /// Store a packet in what is reserved for its holder, if there is room.
    #[inline]
    fn reserve(&mut self, port: u16, priority: u8, bytes: u64) -> bool {
        let limit_bytes = self.policies[usize::from(priority)].reserved_bytes;
        let holder = self.holder(port, priority);
        let has_room = holder.reserved_bytes + bytes <= limit_bytes;
        if has_room {
            holder.reserved_bytes += bytes;
            self.reserved_used_bytes += bytes;
        }
        has_room
    }

    #[inline]
    fn admit_lossy(&mut self, port: u16, priority: u8, bytes: u64) -> Verdict {
        let free_bytes = self.free_bytes();
        let threshold_bytes = self.dynamic_threshold_bytes(priority);
        let queue = self.holder(port, priority);
        if bytes > free_bytes || queue.shared_bytes + bytes > threshold_bytes {
            return Verdict::Dropped;
        }
        queue.shared_bytes += bytes;
        self.shared_used_bytes += bytes;
        Verdict::Stored
    }

    #[inline]
    fn admit_lossless(&mut self, port: u16, priority: u8, bytes: u64) -> Verdict {
        let free_bytes = self.free_bytes();
        let limit_bytes = self.policies[usize::from(priority)].headroom_bytes;
        let pool_bytes = self.headroom_pool_bytes - self.headroom_used_bytes;
        let ingress = self.holder(port, priority);
        if !ingress.paused && bytes <= free_bytes {
            ingress.shared_bytes += bytes;
            self.shared_used_bytes += bytes;
        } else if ingress.headroom_bytes + bytes <= limit_bytes && bytes <= pool_bytes {
            ingress.headroom_bytes += bytes;
            self.headroom_used_bytes += bytes;
        } else {
            return Verdict::HeadroomExceeded;
        }
        self.pause_if_over(port, priority)
    }

    #[inline]
    fn pause_if_over(&mut self, port: u16, priority: u8) -> Verdict {
        let threshold_bytes = self.threshold_bytes(priority);
        let ingress = self.holder(port, priority);
        let is_over = ingress.headroom_bytes > 0 || ingress.shared_bytes >= threshold_bytes;
        if ingress.paused || !is_over {
            return Verdict::Stored;
        }
        ingress.paused = true;
        Verdict::StoredPause
    }

    /// A packet has left. True if its ingress may resume.
    #[inline]
    pub fn release(&mut self, passage: Passage, bytes: u32) -> bool {
        let priority = passage.priority;
        let port = self.holding_port(passage);
        let holder = self.holder(port, priority);
        let from_headroom_bytes = holder.headroom_bytes.min(u64::from(bytes));
        let rest_bytes = u64::from(bytes) - from_headroom_bytes;
        let from_shared_bytes = holder.shared_bytes.min(rest_bytes);
        let from_reserved_bytes = rest_bytes - from_shared_bytes;
        holder.headroom_bytes -= from_headroom_bytes;
        holder.shared_bytes -= from_shared_bytes;
        holder.reserved_bytes -= from_reserved_bytes;
        let is_paused = holder.paused;
        self.headroom_used_bytes -= from_headroom_bytes;
        self.shared_used_bytes -= from_shared_bytes;
        self.reserved_used_bytes -= from_reserved_bytes;
        is_paused && self.resume_if_below(port, priority)
    }

    #[inline]
    fn resume_if_below(&mut self, port: u16, priority: u8) -> bool {
        let threshold_bytes = self.threshold_bytes(priority);
        let offset_bytes = self.policies[usize::from(priority)].xon_offset_bytes;
        let ingress = self.holder(port, priority);
        let is_below = ingress.shared_bytes == 0
            || ingress.shared_bytes.saturating_add(offset_bytes) <= threshold_bytes;
        let resumes = ingress.headroom_bytes == 0 && is_below;
        if resumes {
            ingress.paused = false;
        }
        resumes
    }

    /// The port whose holder a packet counts for: of arrival if lossless, else of departure.
    #[inline]
    fn holding_port(&self, passage: Passage) -> u16 {
        match self.is_lossless(passage.priority) {
            true => passage.ingress_port,
            false => passage.egress_port,
        }
    }

    #[inline]
    fn holder(&mut self, port: u16, priority: u8) -> &mut Holder {
        &mut self.holders[usize::from(port)][usize::from(priority)]
    }

    /// Where an ingress of that priority pauses now.
    #[inline]
    fn threshold_bytes(&self, priority: u8) -> u64 {
        match self.policies[usize::from(priority)].xoff_bytes {
            Some(bytes) => bytes,
            None => self.dynamic_threshold_bytes(priority),
        }
    }

    #[inline]
    fn dynamic_threshold_bytes(&self, priority: u8) -> u64 {
        (self.policies[usize::from(priority)].alpha * self.free_bytes() as f64) as u64
    }

    #[inline]
    fn free_bytes(&self) -> u64 {
        self.shared_bytes.saturating_sub(self.shared_used_bytes)
    }

    /// The priority pauses rather than drops.
    #[inline]
    pub fn is_lossless(&self, priority: u8) -> bool {
        self.policies[usize::from(priority)].lossless
    }

    /// A glance at what storing a packet needs.
    #[inline]
    pub(super) fn glance(&self, passage: Passage) -> u64 {
        let port = usize::from(self.holding_port(passage));
        self.holders[port][usize::from(passage.priority)].shared_bytes
    }

    /// The ingress has paused its neighbour and has not let it resume.
    pub fn is_paused(&self, port: u16, priority: u8) -> bool {
        self.holders[usize::from(port)][usize::from(priority)].paused
    }

    /// Bytes stored, headrooms and reservations included.
    #[inline]
    pub fn used_bytes(&self) -> u64 {
        self.reserved_used_bytes + self.shared_used_bytes + self.headroom_used_bytes
    }

    /// Most bytes ever stored.
    pub fn max_used_bytes(&self) -> u64 {
        self.max_used_bytes
    }

    /// Bytes that arrived at the port with that priority, a lossless one, and are stored.
    pub fn ingress_bytes(&self, port: u16, priority: u8) -> u64 {
        let ingress = &self.holders[usize::from(port)][usize::from(priority)];
        ingress.reserved_bytes + ingress.shared_bytes + ingress.headroom_bytes
    }
}
