//! Whole jobs in virtual time.

mod congestion;
mod virtual_jobs;
