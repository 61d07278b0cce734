//! A neighbour that pauses for good, and the watchdog.

use crate::world::{DATA, GBPS, OTHER, US, job, lossless, packet};
use _native::config::{PfcWatchdogConfig, StormAction};
use _native::fabric::{Output, PortLink, Switch};
use _native::roce::packet::{Frame, PauseFrame};

const LINK: PortLink = PortLink { rate_bps: 100 * GBPS, delay_ps: US };
const DETECTION_PS: u64 = 200_000 * US;
const RESTORATION_PS: u64 = 300_000 * US;

/// A switch whose port 2 is being paused, and what it asked for.
struct Paused {
    switch: Switch,
    now_ps: u64,
    wakes: Vec<(u64, u32)>,
    /// Priorities' DSCPs and times of frames that left port 2.
    sent: Vec<(u8, u64)>,
    /// Pause frames that left port 0, to pause or to resume.
    pauses: Vec<bool>,
}

impl Paused {
    fn new(action: Option<StormAction>) -> Self {
        Self::watching(action, true)
    }

    fn watching(action: Option<StormAction>, watched: bool) -> Self {
        let mut job = job(3, 2_000_000, lossless(10_000, 100_000));
        job.switches[0].priorities[usize::from(DATA.1)].watched = watched;
        job.switches[0].pfc_watchdog = action.map(|action| PfcWatchdogConfig {
            detection_ps: DETECTION_PS,
            restoration_ps: RESTORATION_PS,
            action,
        });
        let switch = Switch::new(&job, 0, &[LINK; 3]);
        Self { switch, now_ps: 0, wakes: Vec::new(), sent: Vec::new(), pauses: Vec::new() }
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Wake { token, at_ps } => self.wakes.push((at_ps, token)),
                Output::Transmit { port: 2, frame: Frame::Roce(packet), end_ps } => {
                    self.sent.push((packet.dscp, end_ps));
                }
                Output::Transmit { port: 0, frame: Frame::Pause(pause), .. } => {
                    self.pauses.push(pause.quanta[usize::from(DATA.1)] > 0);
                }
                Output::Transmit { .. } => {}
            }
        }
    }

    fn deliver(&mut self, port: u16, frame: Frame) {
        let mut outputs = Vec::new();
        self.switch.handle_frame(self.now_ps, port, frame, &mut outputs);
        self.take(outputs);
    }

    fn arrive(&mut self, (dscp, _): (u8, u8)) {
        self.deliver(0, Frame::Roce(Box::new(packet(0, 2, dscp, 4158))));
    }

    /// Pass the time, with a pause of data every 100 us until `paused_until_ps`.
    fn advance(&mut self, until_ps: u64, paused_until_ps: u64) {
        let mut next_pause_ps = self.now_ps;
        loop {
            let wake = self.wakes.iter().copied().min().filter(|wake| wake.0 <= until_ps);
            let pause_ps = next_pause_ps.min(paused_until_ps);
            if next_pause_ps < paused_until_ps.min(until_ps)
                && wake.is_none_or(|wake| pause_ps <= wake.0)
            {
                self.now_ps = next_pause_ps;
                next_pause_ps += 100 * US;
                let class_enable = 1 << DATA.1;
                let pause = PauseFrame { source_mac: [0; 6], class_enable, quanta: [0xFFFF; 8] };
                self.deliver(2, Frame::Pause(Box::new(pause)));
            } else if let Some((at_ps, token)) = wake {
                self.wakes.retain(|other| *other != (at_ps, token));
                self.now_ps = at_ps;
                let mut outputs = Vec::new();
                self.switch.handle_wake(at_ps, token, &mut outputs);
                self.take(outputs);
            } else {
                break;
            }
        }
        self.now_ps = until_ps;
    }

    /// Three packets wait behind pauses; time passes up to `until_ps`.
    fn hold(action: Option<StormAction>, until_ps: u64) -> Self {
        Self::new(action).held(until_ps)
    }

    fn held(mut self, until_ps: u64) -> Self {
        self.advance(US, US);
        (0..3).for_each(|_| self.arrive(DATA));
        self.advance(until_ps, until_ps);
        self
    }

    fn storms(&self) -> u64 {
        self.switch.queue_totals(2, DATA.1).storms
    }
}

#[test]
fn without_a_watchdog_packets_wait_as_long_as_they_are_paused() {
    let paused = Paused::hold(None, 1_000_000 * US);
    assert!(paused.sent.is_empty());
    assert!(paused.switch.depth_bytes(2, DATA.1) > 0);
    assert_eq!(paused.pauses.first(), Some(&true), "the pause spreads to who sends there");
}

#[test]
fn a_priority_that_is_not_watched_waits_as_without_a_watchdog() {
    let paused = Paused::watching(Some(StormAction::Drop), false).held(1_000_000 * US);
    assert_eq!((paused.storms(), paused.sent.len()), (0, 0));
    assert!(paused.switch.depth_bytes(2, DATA.1) > 0);
}

#[test]
fn a_shorter_pause_is_no_storm() {
    let mut paused = Paused::hold(Some(StormAction::Drop), DETECTION_PS - 1_000 * US);
    paused.advance(2 * DETECTION_PS, 0);
    assert_eq!((paused.storms(), paused.sent.len()), (0, 3));
}

#[test]
fn a_storm_drops_what_waits_and_what_comes_and_lets_the_senders_go_on() {
    let mut paused = Paused::hold(Some(StormAction::Drop), DETECTION_PS + 1_000 * US);
    paused.arrive(DATA);
    let totals = paused.switch.queue_totals(2, DATA.1);
    assert_eq!((totals.storms, totals.storm_dropped_packets), (1, 4));
    assert!(paused.sent.is_empty());
    assert_eq!(paused.switch.buffer().used_bytes(), 0);
    assert_eq!(paused.pauses.last(), Some(&false), "the sender was told to resume");
}

#[test]
fn a_storm_may_be_ignored_instead() {
    let mut paused = Paused::hold(Some(StormAction::Forward), DETECTION_PS + 1_000 * US);
    paused.arrive(DATA);
    let totals = paused.switch.queue_totals(2, DATA.1);
    assert_eq!((totals.storms, totals.dropped_packets), (1, 0));
    assert_eq!(paused.sent.len(), 4);
}

#[test]
fn a_storm_ends_when_no_pause_has_come_for_the_restoration_time() {
    let storm_ps = DETECTION_PS + 1_000 * US;
    let mut paused = Paused::hold(Some(StormAction::Drop), storm_ps);
    paused.advance(storm_ps + RESTORATION_PS - 1_000 * US, 0);
    paused.arrive(DATA);
    assert_eq!(paused.switch.queue_totals(2, DATA.1).storm_dropped_packets, 4);
    paused.advance(storm_ps + RESTORATION_PS, 0);
    paused.arrive(DATA);
    assert_eq!(paused.sent.len(), 1);
}

#[test]
fn a_storm_of_one_priority_leaves_the_others_alone() {
    let mut paused = Paused::hold(Some(StormAction::Drop), DETECTION_PS + 1_000 * US);
    paused.arrive(OTHER);
    assert_eq!(paused.sent.iter().map(|(dscp, _)| *dscp).collect::<Vec<u8>>(), [OTHER.0]);
}
