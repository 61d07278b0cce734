//! Whole jobs in virtual time.

mod congestion;
mod executor;
mod recovery;
mod virtual_jobs;
