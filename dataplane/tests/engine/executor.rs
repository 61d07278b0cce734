//! Operations start when those before them are complete, and not before.

use _native::engine::executor::{Action, Executor};
use _native::engine::program::NO_LANE;
use _native::engine::testing::ProgramBuilder;
use std::sync::Arc;

fn started(builder: ProgramBuilder) -> Executor {
    let mut executor = Executor::new(Arc::new(builder.finish()));
    executor.start(0);
    executor
}

fn actions(executor: &mut Executor) -> Vec<Action> {
    std::iter::from_fn(|| executor.poll_action()).collect()
}

#[test]
fn joins_complete_at_once_in_dependency_order() {
    let mut builder = ProgramBuilder::new(0);
    builder.join(&[2]);
    builder.join(&[]);
    builder.join(&[1]);
    let mut executor = started(builder);
    assert!(executor.is_done());
    let mut completions = Vec::new();
    executor.take_completions(&mut completions);
    assert_eq!(completions.iter().map(|c| c.op).collect::<Vec<_>>(), [1, 2, 0]);
}

#[test]
fn a_lane_runs_one_delay_at_a_time_lowest_ready_index_first() {
    let mut builder = ProgramBuilder::new(0);
    builder.delay(10, 0, &[2]);
    builder.delay(20, 0, &[]);
    builder.join(&[]);
    let mut executor = started(builder);
    assert_eq!(actions(&mut executor), [Action::Delay { op: 0, at_ps: 10 }]);
    executor.handle_delay_end(10, 0);
    assert_eq!(actions(&mut executor), [Action::Delay { op: 1, at_ps: 30 }]);
    executor.handle_delay_end(30, 1);
    assert!(executor.is_done());
}

#[test]
fn delays_without_a_lane_run_side_by_side() {
    let mut builder = ProgramBuilder::new(0);
    builder.delay(10, NO_LANE, &[]);
    builder.delay(20, NO_LANE, &[]);
    assert_eq!(actions(&mut started(builder)).len(), 2);
}

#[test]
fn delays_of_no_time_pass_a_lane_at_once() {
    let mut builder = ProgramBuilder::new(0);
    for _ in 0..3 {
        builder.delay(0, 0, &[]);
    }
    assert!(started(builder).is_done());
}

#[test]
fn a_message_may_arrive_before_its_receive_starts() {
    let mut builder = ProgramBuilder::new(0);
    builder.delay(50, 0, &[]);
    builder.receive(1, 8, 3, &[0]);
    let mut executor = started(builder);
    assert!(executor.handle_message(5, 1));
    assert_eq!(executor.ops_done(), 0);
    executor.handle_delay_end(50, 0);
    assert!(executor.is_done());
    assert_eq!((executor.start_ps()[1], executor.end_ps()[1]), (50, 50));
}

#[test]
fn a_receive_waits_for_its_message() {
    let mut builder = ProgramBuilder::new(0);
    builder.receive(1, 8, 3, &[]);
    let mut executor = started(builder);
    assert_eq!(executor.pending().collect::<Vec<_>>(), [0]);
    assert!(executor.handle_message(70, 0));
    assert_eq!((executor.start_ps()[0], executor.end_ps()[0]), (0, 70));
}

#[test]
fn a_second_message_for_one_receive_is_refused() {
    let mut builder = ProgramBuilder::new(0);
    builder.receive(1, 8, 3, &[]);
    let mut executor = started(builder);
    assert!(executor.handle_message(70, 0));
    assert!(!executor.handle_message(80, 0));
    assert!(!executor.handle_message(80, 99));
}

#[test]
fn a_send_is_posted_with_the_peers_operation_as_immediate() {
    let mut builder = ProgramBuilder::new(0);
    builder.send(4, 1000, 17, &[]);
    let mut executor = started(builder);
    let post = Action::Post { op: 0, peer: 4, size_bytes: 1000, peer_op: 17 };
    assert_eq!(actions(&mut executor), [post]);
    executor.handle_sent(9, 0);
    assert!(executor.is_done());
}

#[test]
fn a_send_waits_until_its_receiver_is_ready() {
    let mut builder = ProgramBuilder::new(0);
    builder.send(4, 1000, 17, &[]);
    let mut executor = Executor::new(Arc::new(builder.finish())).with_clear_to_send(true);
    executor.start(0);
    assert_eq!(actions(&mut executor), []);
    assert!(!executor.is_cleared(0));
    assert!(executor.handle_cleared(0));
    let post = Action::Post { op: 0, peer: 4, size_bytes: 1000, peer_op: 17 };
    assert_eq!(actions(&mut executor), [post]);
    assert!(!executor.handle_cleared(0) && !executor.handle_cleared(9));
}

#[test]
fn a_receive_announces_itself_when_it_starts_and_a_ready_receiver_is_remembered() {
    let mut builder = ProgramBuilder::new(0);
    builder.receive(1, 8, 3, &[]);
    builder.send(1, 8, 4, &[0]);
    let mut executor = Executor::new(Arc::new(builder.finish())).with_clear_to_send(true);
    executor.start(0);
    assert_eq!(actions(&mut executor), [Action::Clear { op: 0, peer: 1, peer_op: 3 }]);
    assert!(executor.handle_cleared(1));
    assert_eq!(actions(&mut executor), []);
    executor.handle_message(5, 0);
    assert_eq!(actions(&mut executor).len(), 1);
}
