//! Opening sockets in another network namespace. A socket stays in the namespace it was made in.
#![allow(unsafe_code)]

use super::PortError;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Where `ip netns` keeps namespaces. Source: iproute2, ip-netns(8).
const DIRECTORY: &str = "/run/netns";

/// Call `open` in a network namespace, in a thread that ends with it; `None` calls it here.
pub fn within<T: Send>(
    namespace: Option<&str>,
    open: impl FnOnce() -> Result<T, PortError> + Send,
) -> Result<T, PortError> {
    let Some(name) = namespace else { return open() };
    let enter_and_open = || {
        enter(name).map_err(|source| refused(name, source))?;
        open()
    };
    std::thread::scope(|scope| scope.spawn(enter_and_open).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn refused(name: &str, source: io::Error) -> PortError {
    let remedy = match source.kind() {
        io::ErrorKind::PermissionDenied => "run as root or grant cap_sys_admin",
        _ => "name one that `ip netns list` shows",
    };
    PortError::Namespace { name: name.into(), source, remedy }
}

/// Move the calling thread.
fn enter(name: &str) -> io::Result<()> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of a namespace"));
    }
    let namespace = File::open(Path::new(DIRECTORY).join(name))?;
    // SAFETY: the descriptor is open; the call concerns the calling thread alone.
    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
        // The kernel says EPERM, which is no kind of its own.
        let error = io::Error::last_os_error();
        let is_forbidden = error.raw_os_error() == Some(libc::EPERM);
        return Err(if is_forbidden { io::ErrorKind::PermissionDenied.into() } else { error });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_name_and_no_path() {
        for name in ["", ".", "..", "../../proc/1/ns/net", "a/b", "rankwire-there-is-none"] {
            let error = within(Some(name), || Ok(())).expect_err("there is none");
            assert!(error.to_string().contains("ip netns list"), "{error}");
        }
    }
}
