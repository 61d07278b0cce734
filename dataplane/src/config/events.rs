//! What happens to links while a job runs, and what switches do about it.

use serde::Deserialize;

/// Changes of some links, counted from one moment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEventConfig {
    /// Indices of the links.
    pub links: Vec<u32>,
    /// The moment.
    pub trigger: EventTrigger,
    /// What happens, in the order of time.
    pub changes: Vec<LinkChangeConfig>,
}

/// A moment of a job.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventTrigger {
    /// A time.
    Time {
        /// The time.
        at_ps: u64,
    },
    /// The first start of any of these operations.
    FirstStart {
        /// The operations.
        operations: Vec<OperationId>,
    },
    /// The last end of all of these operations.
    LastEnd {
        /// The operations.
        operations: Vec<OperationId>,
    },
}

/// An operation of a job.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct OperationId {
    /// Rank whose program it is in.
    pub rank: u32,
    /// Index in the program.
    pub op: u32,
}

/// One change of a link, both directions alike.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkChangeConfig {
    /// How long after the moment.
    pub after_ps: u64,
    /// What changes.
    pub change: LinkChange,
}

/// What happens to a link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkChange {
    /// It carries nothing any more; what is on it and in the queues before it is lost.
    Down,
    /// It carries frames again.
    Up,
    /// Its line rate changes, for the frames that begin from then on.
    Rate {
        /// The new rate.
        rate_bps: u64,
    },
}

/// What switches do about links that go down or come up.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ReroutingConfig {
    /// So long after a change the switches at the link know of it.
    pub detection_delay_ps: u64,
    /// So long after that all other switches know which ways lead nowhere.
    pub convergence_delay_ps: u64,
}

/// Which flows take another port when one of several equal-cost ports fails.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FailureHashing {
    /// The hash modulo the ports that are left: most flows move.
    #[default]
    Modulo,
    /// Only the flows of the failed port move.
    Resilient,
}
