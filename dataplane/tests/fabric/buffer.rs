//! Admission, thresholds and headroom of the shared buffer.

use crate::world::{DATA, OTHER, job, lossless, lossy};
use _native::fabric::buffer::{Passage, SharedBuffer, Verdict};

fn through(port: u16, priority: u8) -> Passage {
    Passage { ingress_port: port, egress_port: 3 - port, priority }
}

/// Store packets of 100 bytes that come in at `port` until one is dropped; how much was stored.
fn fill(buffer: &mut SharedBuffer, port: u16, priority: u8) -> u64 {
    let before_bytes = buffer.used_bytes();
    while buffer.admit(through(port, priority), 100) == Verdict::Stored {}
    buffer.used_bytes() - before_bytes
}

fn buffer(buffer_bytes: u64, priorities: Vec<_native::config::PriorityConfig>) -> SharedBuffer {
    SharedBuffer::new(&job(4, buffer_bytes, priorities).switches[0])
}

#[test]
fn a_lossy_queue_takes_alpha_times_what_is_free() {
    let mut buffer = buffer(10_000, lossy());
    let queue_bytes = fill(&mut buffer, 0, OTHER.1);
    assert_eq!(queue_bytes, 5_000, "alpha is 1: as much as it leaves free");
    assert_eq!(
        buffer.admit(through(1, OTHER.1), 100),
        Verdict::Stored,
        "another queue has its share"
    );
}

#[test]
fn a_lossless_ingress_pauses_at_its_threshold_and_fills_its_headroom() {
    let mut buffer = buffer(100_000, lossless(1_000, 500));
    assert_eq!(buffer.admit(through(0, DATA.1), 999), Verdict::Stored);
    assert_eq!(buffer.admit(through(0, DATA.1), 100), Verdict::StoredPause);
    assert_eq!(buffer.admit(through(0, DATA.1), 400), Verdict::Stored);
    assert_eq!(buffer.admit(through(0, DATA.1), 101), Verdict::HeadroomExceeded);
    assert_eq!(buffer.admit(through(0, DATA.1), 100), Verdict::Stored);
    assert_eq!(buffer.admit(through(1, DATA.1), 999), Verdict::Stored, "another port has its own");
    assert_eq!(buffer.ingress_bytes(0, DATA.1), 999 + 100 + 500);
}

#[test]
fn an_ingress_resumes_below_its_threshold_less_the_offset() {
    let mut priorities = lossless(1_000, 500);
    priorities[usize::from(DATA.1)].xon_offset_bytes = 300;
    let mut buffer = buffer(100_000, priorities);
    for _ in 0..11 {
        buffer.admit(through(0, DATA.1), 100);
    }
    let resumed = |buffer: &mut SharedBuffer| buffer.release(through(0, DATA.1), 100);
    assert!(!resumed(&mut buffer), "the headroom is empty now");
    assert!(!resumed(&mut buffer) && !resumed(&mut buffer));
    assert!(resumed(&mut buffer), "700 bytes are left");
    assert!(!resumed(&mut buffer), "it resumed before");
}

#[test]
fn a_dynamic_threshold_falls_as_the_buffer_fills() {
    let mut priorities = lossless(0, 1_000);
    priorities[usize::from(DATA.1)].xoff_bytes = None;
    let mut buffer = buffer(10_000, priorities);
    assert_eq!(buffer.admit(through(0, DATA.1), 4_000), Verdict::Stored);
    assert_eq!(buffer.admit(through(1, DATA.1), 2_900), Verdict::Stored);
    assert_eq!(
        buffer.admit(through(2, DATA.1), 1_600),
        Verdict::StoredPause,
        "1500 bytes are free"
    );
}

#[test]
fn a_full_buffer_leaves_each_ingress_its_headroom() {
    let mut buffer = buffer(1_000, lossless(5_000, 500));
    assert_eq!(buffer.admit(through(0, DATA.1), 1_000), Verdict::Stored);
    assert_eq!(buffer.admit(through(1, DATA.1), 500), Verdict::StoredPause);
    assert_eq!(buffer.admit(through(1, DATA.1), 1), Verdict::HeadroomExceeded);
    assert!(buffer.release(through(1, DATA.1), 500), "an empty ingress always resumes");
    assert_eq!(buffer.used_bytes(), 1_000);
}

#[test]
fn headrooms_that_share_a_pool_drop_when_it_is_full_and_use_what_others_give_back() {
    let mut job = job(4, 100_000, lossless(1_000, 500));
    job.switches[0].headroom_pool_bytes = Some(800);
    let mut buffer = SharedBuffer::new(&job.switches[0]);
    for port in 0..3 {
        assert_eq!(buffer.admit(through(port, DATA.1), 1_000), Verdict::StoredPause);
    }
    assert_eq!(buffer.admit(through(0, DATA.1), 500), Verdict::Stored);
    assert_eq!(buffer.admit(through(0, DATA.1), 1), Verdict::HeadroomExceeded, "its own limit");
    assert_eq!(buffer.admit(through(1, DATA.1), 300), Verdict::Stored);
    assert_eq!(buffer.admit(through(2, DATA.1), 1), Verdict::HeadroomExceeded, "the pool's");
    buffer.release(through(0, DATA.1), 200);
    assert_eq!(buffer.admit(through(2, DATA.1), 200), Verdict::Stored);
    assert_eq!(buffer.used_bytes(), 3_000 + 800);
}

#[test]
fn a_priority_may_have_an_alpha_of_its_own() {
    let mut priorities = lossy();
    priorities[usize::from(OTHER.1)].dynamic_threshold_alpha = Some(0.25);
    let mut buffer = buffer(10_000, priorities);
    let queue_bytes = fill(&mut buffer, 0, OTHER.1);
    assert_eq!(queue_bytes, 2_000, "a quarter of what it leaves free");
    assert_eq!(buffer.admit(through(0, 0), 4_000), Verdict::Stored, "others have the switch's");
}

#[test]
fn a_lossy_queue_takes_what_is_reserved_for_it_and_then_its_share() {
    let mut priorities = lossy();
    priorities[usize::from(OTHER.1)].reserved_bytes = 1_050;
    let mut buffer = buffer(10_000, priorities);
    assert_eq!(fill(&mut buffer, 0, 0), 5_000, "nothing is reserved for this one");
    assert_eq!(fill(&mut buffer, 0, OTHER.1), 1_000 + 2_500, "a packet is never split");
    while fill(&mut buffer, 1, 0) + fill(&mut buffer, 2, 0) > 0 {}
    assert_eq!(buffer.admit(through(1, 2), 2_000), Verdict::Dropped, "little is free");
    assert_eq!(fill(&mut buffer, 1, OTHER.1).min(1_000), 1_000, "yet this is kept");
}

#[test]
fn a_lossless_ingress_pauses_for_what_it_holds_beyond_its_reservation() {
    let mut priorities = lossless(1_000, 500);
    priorities[usize::from(DATA.1)].reserved_bytes = 600;
    priorities[usize::from(DATA.1)].xon_offset_bytes = 300;
    let mut buffer = buffer(100_000, priorities);
    for _ in 0..15 {
        assert_eq!(buffer.admit(through(0, DATA.1), 100), Verdict::Stored);
    }
    assert_eq!(buffer.admit(through(0, DATA.1), 100), Verdict::StoredPause, "1000 are shared");
    assert_eq!(buffer.admit(through(0, DATA.1), 100), Verdict::Stored, "in its headroom");
    let mut left = |count| (0..count).map(|_| buffer.release(through(0, DATA.1), 100)).last();
    assert_eq!(left(3), Some(false), "headroom, then shared buffer");
    assert_eq!(left(1), Some(true), "700 are shared");
    assert_eq!(buffer.ingress_bytes(0, DATA.1), 600 + 700);
}

#[test]
fn a_full_shared_buffer_leaves_reservations_to_those_that_have_them() {
    let mut priorities = lossless(5_000, 500);
    priorities[usize::from(DATA.1)].reserved_bytes = 300;
    let mut buffer = buffer(1_000, priorities);
    assert_eq!(buffer.admit(through(0, DATA.1), 300), Verdict::Stored);
    assert_eq!(buffer.admit(through(0, DATA.1), 1_000), Verdict::Stored);
    assert_eq!(buffer.admit(through(1, DATA.1), 300), Verdict::Stored, "no pause for it");
    assert_eq!(buffer.admit(through(1, DATA.1), 100), Verdict::StoredPause);
    assert_eq!(buffer.used_bytes(), 300 + 1_000 + 300 + 100);
}
