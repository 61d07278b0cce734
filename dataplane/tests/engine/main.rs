//! Whole jobs in virtual time.

mod virtual_jobs;
