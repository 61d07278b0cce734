//! Congestion control against the equations and vectors of its sources.

mod notification_point;
mod options;
mod profiles;
mod properties;
mod reaction_point;
mod swift;
