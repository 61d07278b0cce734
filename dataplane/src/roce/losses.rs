//! Which packets in flight have arrived ahead of their turn, and which are lost. For selective repeat.
//!
//! Source: Mittal et al., "Revisiting network support for RDMA", SIGCOMM 2018, section 3.1 (IRN): a
//! packet is lost if one sent after it has arrived; it is sent again once, and after that only by the
//! timer.

/// A window of packets, one bit for each.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Bit `number % (64 * words)`: the packet has arrived ahead of its turn.
    arrived: Vec<u64>,
    /// Packets in front are acknowledged or have been sent again.
    scanned: u64,
    /// Packets from here on have not arrived ahead of their turn.
    arrived_below: u64,
    /// Packets from here on are not known to be lost.
    lost_below: u64,
    /// How far packets may overtake each other without counting as lost.
    reordering_packets: u64,
}

impl Losses {
    pub fn new(window_packets: u64, reordering_packets: u32) -> Self {
        let words = window_packets.next_power_of_two().div_ceil(64);
        Self {
            arrived: vec![0; words as usize],
            scanned: 0,
            lost_below: 0,
            arrived_below: 0,
            reordering_packets: u64::from(reordering_packets),
        }
    }

    #[inline]
    fn place(&self, number: u64) -> (usize, u64) {
        let word = number / 64 % self.arrived.len() as u64;
        (word as usize, 1 << (number % 64))
    }

    /// Packet `number` has arrived; those far enough before it that have not are lost.
    pub fn arrive(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.arrived[word] |= bit;
        self.arrived_below = self.arrived_below.max(number + 1);
        self.lost_below = self.lost_below.max(number.saturating_sub(self.reordering_packets));
    }

    /// The packets in `numbers` that have not arrived are lost, sent again before or not.
    pub fn lose(&mut self, numbers: std::ops::Range<u64>) {
        self.scanned = numbers.start;
        self.lost_below = self.lost_below.max(numbers.end);
    }

    /// The packets in `numbers`, which begin with the oldest in the window, are acknowledged. The one
    /// behind them has not arrived, or was not taken: it would be acknowledged as well.
    #[inline]
    pub fn acknowledge(&mut self, numbers: std::ops::Range<u64>) {
        self.scanned = self.scanned.max(numbers.end);
        if self.arrived_below <= numbers.start {
            // Nothing has arrived ahead of its turn since.
            return;
        }
        for number in numbers.start..=numbers.end {
            let (word, bit) = self.place(number);
            self.arrived[word] &= !bit;
        }
    }

    /// The oldest packet to send again.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let mut number = self.scanned;
        while number < self.lost_below {
            let (word, _) = self.place(number);
            let missing = !self.arrived[word] >> (number % 64);
            if missing != 0 {
                let lost = number + u64::from(missing.trailing_zeros());
                return (lost < self.lost_below).then_some(lost);
            }
            number = (number / 64 + 1) * 64;
        }
        None
    }

    /// Packet `number` has been sent again.
    pub fn sent(&mut self, number: u64) {
        self.scanned = number + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(losses: &mut Losses) -> Vec<u64> {
        std::iter::from_fn(|| losses.next().inspect(|&number| losses.sent(number))).collect()
    }

    #[test]
    fn what_lies_before_an_arrival_is_lost_once() {
        let mut losses = Losses::new(256, 0);
        assert_eq!(losses.next(), None);
        losses.arrive(3);
        losses.arrive(5);
        assert_eq!(drain(&mut losses), [0, 1, 2, 4]);
        losses.arrive(6);
        assert!(drain(&mut losses).is_empty());
        losses.arrive(8);
        assert_eq!(drain(&mut losses), [7]);
    }

    #[test]
    fn the_window_turns_over() {
        let mut losses = Losses::new(64, 0);
        for start in (0..640u64).step_by(32) {
            losses.arrive(start + 31);
            losses.arrive(start + 10);
            let expected: Vec<u64> =
                (start..start + 31).filter(|number| *number != start + 10).collect();
            assert_eq!(drain(&mut losses), expected);
            losses.acknowledge(start..start + 32);
        }
    }

    #[test]
    fn an_arrival_a_window_ago_is_forgotten() {
        let mut losses = Losses::new(64, 0);
        losses.arrive(1);
        losses.acknowledge(0..1);
        losses.acknowledge(1..64);
        losses.arrive(67);
        losses.acknowledge(64..65);
        assert_eq!(drain(&mut losses), [65, 66]);
    }

    #[test]
    fn what_was_acknowledged_before_the_first_loss_is_not_lost() {
        let mut losses = Losses::new(64, 0);
        losses.acknowledge(0..100);
        losses.acknowledge(100..200);
        losses.arrive(202);
        assert_eq!(drain(&mut losses), [200, 201]);
    }

    #[test]
    fn packets_may_overtake_each_other_as_far_as_allowed() {
        let mut losses = Losses::new(64, 3);
        losses.arrive(1);
        losses.arrive(3);
        assert!(drain(&mut losses).is_empty());
        losses.arrive(4);
        assert_eq!(drain(&mut losses), [0]);
        losses.acknowledge(0..5);
        losses.arrive(68);
        assert_eq!(drain(&mut losses), (5..65).collect::<Vec<u64>>());
    }

    #[test]
    fn the_oldest_packet_has_not_arrived_whatever_was_said_before() {
        let mut losses = Losses::new(64, 0);
        losses.arrive(1);
        losses.acknowledge(0..1);
        losses.lose(1..2);
        assert_eq!(drain(&mut losses), [1]);
    }

    #[test]
    fn after_a_timeout_everything_missing_is_lost_again() {
        let mut losses = Losses::new(128, 0);
        losses.arrive(2);
        assert_eq!(drain(&mut losses), [0, 1]);
        losses.lose(0..5);
        assert_eq!(drain(&mut losses), [0, 1, 3, 4]);
    }
}
