//! Whole jobs in virtual time.

mod congestion;
mod executor;
mod impairment;
mod recovery;
mod soak;
mod virtual_jobs;
