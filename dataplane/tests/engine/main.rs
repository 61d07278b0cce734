//! Whole jobs in virtual time.

mod congestion;
mod recovery;
mod virtual_jobs;
