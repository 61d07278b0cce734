//! Which priority a packet is queued with.

use crate::config::JobConfig;

/// The priority that each DSCP is queued with: that of its class, 0 for all others. Where classes
/// share a DSCP, data goes before acknowledgements, and those before notifications.
pub(super) fn priority_of_dscp(job: &JobConfig) -> [u8; 64] {
    let classes = &job.classes;
    let mut priorities = [0; 64];
    priorities[usize::from(classes.cnp_dscp & 63)] = classes.cnp_priority & 7;
    priorities[usize::from(classes.ack_dscp & 63)] = classes.ack_priority & 7;
    for further in &job.further_classes {
        priorities[usize::from(further.dscp & 63)] = further.priority & 7;
    }
    priorities[usize::from(classes.data_dscp & 63)] = classes.data_priority & 7;
    priorities
}
