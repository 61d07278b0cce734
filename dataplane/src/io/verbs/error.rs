//! What can be wrong with an RDMA device, and what to do about it.

use std::io;

/// Something that is missing or refused; `remedy` says what to load, grant or install.
#[derive(Debug, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct VerbsError {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// What makes adapters appear, of hardware and of software.
pub const LOAD_DRIVER: &str = "load the driver of the adapter (modprobe mlx5_ib, irdma, bnxt_re), or \
    make a software one: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev INTERFACE";
const RAISE_MEMLOCK: &str =
    "raise the limit of locked memory (ulimit -l unlimited, LimitMEMLOCK=infinity of a service)";

impl VerbsError {
    /// What is wrong and what to do.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }

    /// A call that the system refused, and what to do about it by the kind of the refusal.
    pub fn refused(device: &str, what: &str, source: &io::Error) -> Self {
        let remedy = match source.raw_os_error() {
            Some(libc::ENOMEM | libc::EAGAIN) => RAISE_MEMLOCK.into(),
            Some(libc::EACCES | libc::EPERM) => {
                "grant read and write on /dev/infiniband/uverbs* (as a rule to the group rdma), or run \
                 as root"
                    .into()
            }
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ENOSYS) => {
                "modprobe ib_uverbs, and see that /dev/infiniband/uverbs* is there (in a container too)"
                    .into()
            }
            Some(libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                "see that the peer answers to ping, by the interface of the device".to_owned()
            }
            _ => format!("see rdma link and dmesg for {device}"),
        };
        Self::new(format!("{device}: {what}: {source}"), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_grant_raise_load_or_look_at() {
        for (error, remedy) in [
            (libc::EACCES, "grant read and write on /dev/infiniband/uverbs*"),
            (libc::ENOMEM, "ulimit -l unlimited"),
            (libc::ENOSYS, "modprobe ib_uverbs"),
            (libc::ETIMEDOUT, "answers to ping"),
            (libc::EINVAL, "see rdma link and dmesg for mlx5_0"),
        ] {
            let source = io::Error::from_raw_os_error(error);
            let text = VerbsError::refused("mlx5_0", "queue pair", &source).to_string();
            assert!(text.starts_with("mlx5_0: queue pair: ") && text.contains(remedy), "{text}");
        }
    }
}
