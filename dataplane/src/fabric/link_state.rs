//! What a switch does when a link of its goes down, comes up or changes its rate, and when it learns
//! which ports lead nowhere.

use super::counters::DropCause;
use super::switch::Switch;
use super::{Output, PRIORITIES};

impl Switch {
    /// The link at a port carries nothing from now on. What waits for it is lost, and so is what
    /// comes for it; no pause holds, in neither direction.
    pub fn handle_link_down(&mut self, now_ps: u64, port: u16, outputs: &mut Vec<Output>) {
        self.ports[usize::from(port)].is_down = true;
        for priority in 0..PRIORITIES as u8 {
            self.discard_queue(now_ps, port, priority, DropCause::LinkDown);
            self.pauses.end(now_ps, port, priority);
        }
        self.ports[usize::from(port)].scheduler.restart(now_ps);
        self.serve_owing(now_ps, outputs);
    }

    /// The link at a port carries frames again. The neighbour knows of no pause: an ingress that is
    /// still above its threshold pauses it anew.
    pub fn handle_link_up(&mut self, now_ps: u64, port: u16, outputs: &mut Vec<Output>) {
        self.ports[usize::from(port)].restart(now_ps);
        for priority in 0..PRIORITIES as u8 {
            if self.buffer.is_paused(port, priority) {
                self.pause_ingress(now_ps, port, priority, outputs);
            }
        }
        self.serve(now_ps, port, outputs);
        self.serve_owing(now_ps, outputs);
    }

    /// The line rate of a port changes for the frames that begin from now on.
    pub fn set_link_rate(&mut self, port: u16, rate_bps: u64) {
        let port = &mut self.ports[usize::from(port)];
        port.scheduler.set_rate(rate_bps);
        port.pause.set_rate(rate_bps);
    }

    /// Spread flows over the ports that `is_usable` says of a NIC and a port; where none is left,
    /// over all as before.
    pub fn reroute(&mut self, is_usable: impl FnMut(usize, u16) -> bool) {
        self.routes.restrict(is_usable);
    }
}
