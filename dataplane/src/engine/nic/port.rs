//! The transmitter of a NIC: control packets wait in the queues of a port scheduler, data does not.
//!
//! The NIC asks which data packet may go when the line is free, so a rate or a pause takes effect on
//! the very next packet.

use crate::fabric::{PRIORITIES, PortScheduler, QueueDiscipline, Queued};
use crate::roce::packet::PauseFrame;
use crate::roce::{Frame, Packet};

/// What a port counted for one priority since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlQueueSample {
    /// Frame bytes that wait now.
    pub depth_bytes: u64,
    /// Most frame bytes that waited at once.
    pub max_depth_bytes: u64,
    /// Frames that began to leave, data included.
    pub tx_packets: u64,
    /// Bytes of them, FCS included.
    pub tx_bytes: u64,
    /// Pause frames that arrived.
    pub pause_frames_received: u64,
}

/// The transmitter of one port.
#[derive(Debug)]
pub struct NicPort {
    scheduler: PortScheduler,
    /// The link carries nothing.
    is_down: bool,
    link_down_packets: u64,
    link_down_bytes: u64,
    pause_frames_received: u64,
    /// By priority, since the last sample.
    pauses_sampled: [u64; PRIORITIES],
    /// Bit n: something may have changed about priority n since the last sample.
    touched: u8,
    /// By priority, since the last sample: frames and their bytes.
    sent_sampled: [(u64, u64); PRIORITIES],
}

impl NicPort {
    /// An idle port.
    pub fn new(rate_bps: u64) -> Self {
        Self {
            scheduler: PortScheduler::new(rate_bps, &[QueueDiscipline::Strict; PRIORITIES]),
            is_down: false,
            link_down_packets: 0,
            link_down_bytes: 0,
            pause_frames_received: 0,
            pauses_sampled: [0; PRIORITIES],
            touched: u8::MAX,
            sent_sampled: [(0, 0); PRIORITIES],
        }
    }

    /// When the line is free.
    #[inline]
    pub fn free_ps(&self) -> u64 {
        self.scheduler.free_ps()
    }

    /// Pause frames that arrived.
    pub fn pause_frames_received(&self) -> u64 {
        self.pause_frames_received
    }

    /// Queue an acknowledgement or notification.
    pub fn push_control(&mut self, now_ps: u64, priority: u8, packet: Packet) {
        let wire_bytes = packet.wire_bytes();
        if self.is_down {
            self.count_link_down(wire_bytes);
            return;
        }
        let frame = Frame::Roce(Box::new(packet));
        let queued = Queued { frame, wire_bytes, ingress_port: 0, enqueued_ps: now_ps };
        self.touched |= 1 << (priority & 7);
        self.scheduler.push(priority, queued);
    }

    /// The link carries nothing from now on: what waits for it is lost, no pause holds.
    pub fn handle_link_down(&mut self, now_ps: u64) {
        self.is_down = true;
        for priority in 0..PRIORITIES as u8 {
            while let Some(queued) = self.scheduler.discard(now_ps, priority) {
                self.count_link_down(queued.wire_bytes);
            }
        }
        self.scheduler.restart(now_ps);
    }

    /// The link carries frames again.
    pub fn handle_link_up(&mut self, now_ps: u64) {
        self.is_down = false;
        self.scheduler.restart(now_ps);
    }

    /// The line rate changes for the frames that begin from now on.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.scheduler.set_rate(rate_bps);
    }

    fn count_link_down(&mut self, wire_bytes: u32) {
        self.link_down_packets += 1;
        self.link_down_bytes += u64::from(wire_bytes);
    }

    /// The link carries nothing.
    #[inline]
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Control packets that waited for the link when it went down or came while it was down, and
    /// their bytes.
    pub fn link_down_losses(&self) -> (u64, u64) {
        (self.link_down_packets, self.link_down_bytes)
    }

    /// Send the oldest control packet of the highest priority that is not paused, if the line is
    /// free: the frame, its length, and when its last bit leaves.
    #[inline]
    pub fn poll_control(&mut self, now_ps: u64) -> Option<(Frame, u32, u64)> {
        let departure = self.scheduler.poll(now_ps)?;
        self.count(departure.priority, departure.queued.wire_bytes);
        Some((departure.queued.frame, departure.queued.wire_bytes, departure.end_ps))
    }

    /// Occupy the free line with a frame from `now_ps` on; when its last bit leaves.
    #[inline]
    pub fn occupy(&mut self, now_ps: u64, priority: u8, wire_bytes: u32) -> u64 {
        self.count(priority, wire_bytes);
        self.scheduler.occupy(now_ps, wire_bytes)
    }

    #[inline]
    fn count(&mut self, priority: u8, wire_bytes: u32) {
        self.touched |= 1 << (priority & 7);
        let (packets, bytes) = &mut self.sent_sampled[usize::from(priority & 7)];
        *packets += 1;
        *bytes += u64::from(wire_bytes);
    }

    /// Stop or resume the priorities that a pause frame names.
    pub fn handle_pause(&mut self, now_ps: u64, pause: &PauseFrame) {
        self.pause_frames_received += 1;
        self.touched |= pause.class_enable;
        for (priority, sampled) in self.pauses_sampled.iter_mut().enumerate() {
            *sampled += u64::from(pause.class_enable >> priority & 1);
        }
        self.scheduler.handle_pause(now_ps, pause);
    }

    /// The priority may not send now.
    #[inline]
    pub fn is_paused(&self, now_ps: u64, priority: u8) -> bool {
        self.scheduler.is_paused(now_ps, priority)
    }

    /// When something of the priority could be sent: the line is free and no pause holds.
    #[inline]
    pub fn open_ps(&self, priority: u8) -> u64 {
        self.scheduler.free_ps().max(self.scheduler.paused_until_ps(priority))
    }

    /// When the first waiting control packet may be sent; `None` if none waits.
    #[inline]
    pub fn next_control_ps(&self) -> Option<u64> {
        self.scheduler.next_ps()
    }

    /// Time that the priority has been paused, up to `now_ps`.
    pub fn paused_ps(&self, now_ps: u64, priority: u8) -> u64 {
        self.scheduler.paused_ps(now_ps, priority)
    }

    /// The priorities (bit n: n) of which something may have changed between the last call and
    /// `now_ps`; the others' samples are empty.
    pub fn take_touched(&mut self, now_ps: u64) -> u8 {
        std::mem::replace(&mut self.touched, self.scheduler.unsettled(now_ps))
    }

    /// Counts of one priority since the last call.
    pub fn take_sample(&mut self, priority: u8) -> ControlQueueSample {
        let sent = std::mem::take(&mut self.sent_sampled[usize::from(priority)]);
        ControlQueueSample {
            depth_bytes: self.scheduler.depth_bytes(priority),
            max_depth_bytes: self.scheduler.take_max_depth_bytes(priority),
            tx_packets: sent.0,
            tx_bytes: sent.1,
            pause_frames_received: std::mem::take(&mut self.pauses_sampled[usize::from(priority)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 ps a byte.
    const RATE_BPS: u64 = 400_000_000_000;

    fn pause(quanta: u16) -> PauseFrame {
        PauseFrame { source_mac: [0; 6], class_enable: 1 << 3, quanta: [quanta; 8] }
    }

    fn control(identification: u16) -> Packet {
        Packet { identification, ..Packet::default() }
    }

    #[test]
    fn a_pause_closes_its_priority_only_and_expires() {
        let mut port = NicPort::new(RATE_BPS);
        port.handle_pause(1000, &pause(100));
        assert!(port.is_paused(1000, 3) && !port.is_paused(1000, 2));
        assert_eq!(port.open_ps(3), 1000 + 100 * 64 * 20);
        assert_eq!(port.open_ps(2), 0);
        assert!(!port.is_paused(1000 + 128_000, 3));
    }

    #[test]
    fn a_pause_of_no_time_resumes_and_paused_time_is_counted() {
        let mut port = NicPort::new(RATE_BPS);
        port.handle_pause(0, &pause(100));
        port.handle_pause(5_000, &pause(0));
        assert!(!port.is_paused(5_000, 3));
        assert_eq!(port.paused_ps(9_000, 3), 5_000);
        assert_eq!(port.take_sample(3).pause_frames_received, 2);
        assert_eq!(port.take_sample(3).pause_frames_received, 0);
        assert_eq!(port.pause_frames_received(), 2);
    }

    #[test]
    fn the_higher_priority_of_control_packets_goes_first() {
        let mut port = NicPort::new(RATE_BPS);
        port.push_control(0, 1, control(1));
        port.push_control(0, 6, control(6));
        let mut order = Vec::new();
        while let Some((Frame::Roce(packet), _, _)) = port.poll_control(port.free_ps()) {
            order.push(packet.identification);
        }
        assert_eq!(order, [6, 1]);
    }

    #[test]
    fn control_waits_for_the_line_and_for_its_own_pause() {
        let mut port = NicPort::new(RATE_BPS);
        port.occupy(0, 3, 4000);
        port.push_control(10, 3, control(1));
        assert!(port.poll_control(10).is_none());
        assert_eq!(port.next_control_ps(), Some(4020 * 20));
        port.handle_pause(20, &pause(u16::MAX));
        assert!(port.poll_control(4020 * 20).is_none());
        assert!(port.next_control_ps() > Some(4020 * 20));
    }
}
