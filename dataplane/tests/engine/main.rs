//! Whole jobs in virtual time.

mod adapters;
mod congestion;
mod data_classes;
mod executor;
mod impairment;
mod link_events;
mod pacing;
mod recovery;
mod soak;
mod virtual_jobs;
