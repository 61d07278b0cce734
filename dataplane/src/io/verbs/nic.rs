//! A NIC that is a port of an RDMA device.

use super::abi::{WorkCompletion, status};
use super::counters::{self, Counters};
use super::device::{BATCH, Device};
use super::discovery::{self, CLASS, Place};
use super::error::VerbsError;
use super::flow::{Flow, Source, Target};
use super::limits::{Needs, write_bytes};
use super::queue_pair::{Connect, QueuePair, timeout_code};
use crate::config::TransportConfig;
use crate::engine::nic::{DeviceEvent, DeviceRequest, PairPlan};
use crate::roce::queue_pair::FailureReason;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Marks the completion of a receive in the number of a work request: errors say nothing else.
const IS_RECEIVE: u64 = 1 << 63;
const PS_PER_NS: u64 = 1000;

/// What a NIC did by its adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounters {
    /// WRITEs that were posted.
    pub writes_posted: u64,
    /// Bytes of them.
    pub bytes_posted: u64,
    /// Messages that arrived.
    pub messages_received: u64,
    /// Those whose last bytes were not what was sent.
    pub payload_mismatches: u64,
}

/// See the module documentation.
pub struct DeviceNic {
    /// Dropped before their device.
    queue_pairs: Vec<QueuePair>,
    device: Device,
    plans: Vec<PairPlan>,
    flows: Vec<Flow>,
    targets: Vec<Target>,
    source: Source,
    depth: usize,
    completions: [WorkCompletion; BATCH],
    failed: Vec<bool>,
    /// Queue pairs whose requests came back undone: of those that failed by themselves the reason may
    /// still be to come.
    flushed: Vec<usize>,
    /// Reports that did not come as completions.
    failures: Vec<(u32, DeviceEvent)>,
    writes: WriteCounters,
    before: Counters,
}

impl DeviceNic {
    /// Open the device that has an address, with a queue pair for each plan and its receives posted.
    pub fn open(
        address: Ipv4Addr,
        interface: Option<&str>,
        mtu_bytes: u32,
        plans: Vec<PairPlan>,
    ) -> Result<Self, VerbsError> {
        let needs = Needs { queue_pairs: plans.len() as u32, mtu_bytes };
        let device = Device::open(address, interface, needs)?;
        let depth = device.depth();
        let made = plans.iter().map(|_| QueuePair::new(&device, depth, depth));
        let queue_pairs: Vec<QueuePair> = made.collect::<Result<_, _>>()?;
        for (index, queue_pair) in queue_pairs.iter().enumerate() {
            for _ in 0..depth {
                let posted = queue_pair.post_receive(IS_RECEIVE | index as u64);
                let name = &device.place().device;
                posted.map_err(|error| VerbsError::refused(name, "receive", &error))?;
            }
        }
        let source = Source { address: device.memory().source(), local_key: device.keys().0 };
        let before = counters::read(device.place());
        Ok(Self {
            targets: vec![Target::default(); plans.len()],
            flows: plans.iter().map(|_| Flow::default()).collect(),
            failed: vec![false; plans.len()],
            flushed: Vec::new(),
            failures: Vec::new(),
            queue_pairs,
            device,
            plans,
            source,
            depth: depth as usize,
            completions: [WorkCompletion::default(); BATCH],
            writes: WriteCounters::default(),
            before,
        })
    }

    /// Numbers of the queue pairs towards a rank, in the order of the plan.
    pub fn numbers(&self, peer_rank: u32) -> impl Iterator<Item = u32> + '_ {
        let pairs = self.plans.iter().zip(&self.queue_pairs);
        pairs.filter(move |(plan, _)| plan.peer_rank == peer_rank).map(|(_, pair)| pair.number())
    }

    /// Ranks of the other ends, each at least once.
    pub fn peer_ranks(&self) -> impl Iterator<Item = u32> + '_ {
        self.plans.iter().map(|plan| plan.peer_rank)
    }

    /// Where peers write to.
    pub fn target(&self) -> Target {
        Target {
            address: self.device.memory().target(),
            remote_key: self.device.keys().1,
            write_bytes: write_bytes(self.device.limits()),
        }
    }

    /// Connect the queue pairs. Those towards a rank have the numbers and the memory that `peer` says;
    /// without, they are a soft endpoint's, which has the planned numbers and takes any address.
    pub fn connect<'a>(
        &mut self,
        transport: &TransportConfig,
        peer: impl Fn(u32) -> Option<(&'a [u32], Target)>,
    ) -> Result<(), VerbsError> {
        let own_bytes = write_bytes(self.device.limits());
        for index in 0..self.plans.len() {
            let plan = self.plans[index];
            let before =
                self.plans[..index].iter().filter(|p| p.peer_rank == plan.peer_rank).count();
            let (remote_qp, target) = match peer(plan.peer_rank) {
                Some((numbers, target)) => match numbers.get(before) {
                    Some(&number) => (number, target),
                    None => return Err(unplanned(&plan)),
                },
                None => (plan.remote_qp, Target { write_bytes: own_bytes, ..Target::default() }),
            };
            let write_bytes = target.write_bytes.clamp(1, own_bytes);
            self.targets[index] = Target { write_bytes, ..target };
            self.queue_pairs[index]
                .connect(&self.device, &attributes(transport, &plan, remote_qp))?;
        }
        Ok(())
    }

    /// Send a message.
    pub fn post(&mut self, request: DeviceRequest) {
        let index = request.pair as usize;
        self.flows[index].push(request);
        self.advance(index);
    }

    /// Post what the queue holds.
    fn advance(&mut self, index: usize) {
        let (flow, target) = (&mut self.flows[index], &self.targets[index]);
        while let Some(write) = flow.next_write(self.depth, &self.source, target) {
            if self.queue_pairs[index].post_write(&write).is_err() {
                return self.fail(index, status::GENERAL_ERROR);
            }
            self.writes.writes_posted += 1;
            self.writes.bytes_posted += u64::from(write.length_bytes);
        }
    }

    fn fail(&mut self, index: usize, status: u32) {
        if !std::mem::replace(&mut self.failed[index], true) {
            self.failures.push((index as u32, DeviceEvent::Failed { reason: reason(status) }));
        }
    }

    /// Take what the adapter reports: queue pair and event.
    pub fn poll(&mut self, mut take: impl FnMut(u32, DeviceEvent)) {
        loop {
            let count = self.device.poll(&mut self.completions);
            for at in 0..count {
                let completion = self.completions[at];
                self.complete(&completion, &mut take);
            }
            if count < BATCH {
                break;
            }
        }
        while let Some(index) = self.flushed.pop() {
            self.fail(index, status::FLUSHED);
        }
        for (index, event) in self.failures.drain(..) {
            take(index, event);
        }
    }

    fn complete(&mut self, completion: &WorkCompletion, take: &mut impl FnMut(u32, DeviceEvent)) {
        let index = (completion.id & !IS_RECEIVE) as usize;
        if completion.status != status::SUCCESS {
            match completion.status {
                status::FLUSHED => self.flushed.push(index),
                status => self.fail(index, status),
            }
        } else if completion.id & IS_RECEIVE != 0 {
            let is_intact = self.device.memory().holds_pattern(completion.length as usize);
            self.writes.messages_received += 1;
            self.writes.payload_mismatches += u64::from(!is_intact);
            if self.queue_pairs[index].post_receive(completion.id).is_err() {
                self.fail(index, status::GENERAL_ERROR);
            }
            let immediate = u32::from_be(completion.immediate);
            take(index as u32, DeviceEvent::Received { immediate, is_intact });
        } else {
            let ended = self.flows[index].complete();
            let event = ended.map_or(DeviceEvent::Advanced, |id| DeviceEvent::Sent { id });
            take(index as u32, event);
            self.advance(index);
        }
    }

    /// Send nothing any more, whatever is posted.
    pub fn stop(&self) {
        self.queue_pairs.iter().for_each(|queue_pair| queue_pair.stop(&self.device));
    }

    /// Readable when there is something to report.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.device.descriptor()
    }

    /// What went through it.
    pub fn write_counters(&self) -> WriteCounters {
        self.writes
    }

    /// Where the device is.
    pub fn place(&self) -> &Place {
        self.device.place()
    }

    /// Rate of its port; 0 if the kernel does not say.
    pub fn port_rate_bps(&self) -> u64 {
        discovery::port_rate_bps(Path::new(CLASS), self.device.place())
    }

    /// Its counters when it was opened.
    pub fn counters_before(&self) -> &Counters {
        &self.before
    }

    /// How much the counters of the device and its port have grown since it was opened.
    pub fn device_counters(&self) -> Counters {
        counters::growth(&self.before, &counters::read(self.device.place()))
    }
}

fn unplanned(plan: &PairPlan) -> VerbsError {
    VerbsError::new(
        format!("rank {} has fewer queue pairs than planned", plan.peer_rank),
        "install the same rankwire on all hosts",
    )
}

fn attributes(transport: &TransportConfig, plan: &PairPlan, remote_qp: u32) -> Connect {
    Connect {
        remote_address: plan.remote_address.into(),
        remote_qp,
        send_psn: plan.send_psn,
        receive_psn: plan.receive_psn,
        mtu_bytes: transport.mtu_bytes,
        traffic_class: plan.traffic_class,
        source_port: plan.source_port,
        timeout: timeout_code(transport.retransmission_timeout_ps / PS_PER_NS),
        retries: transport.retry_count.min(7) as u8,
        not_ready_retries: transport.rnr_retry_count.min(7) as u8,
    }
}

/// Why a connection ended, by the status of the completion that ended it.
pub(super) fn reason(code: u32) -> FailureReason {
    match code {
        status::RETRIES_EXCEEDED => FailureReason::RetriesExhausted,
        status::NOT_READY_RETRIES_EXCEEDED => FailureReason::ReceiverNotReady,
        status::REMOTE_INVALID_REQUEST => FailureReason::RefusedAsInvalid,
        status::REMOTE_ACCESS => FailureReason::RefusedAccess,
        status::REMOTE_OPERATION => FailureReason::RefusedOperation,
        status => FailureReason::Device { status },
    }
}
