"""Runs in the guest: starts an agent as a user would, ends it, and reads the kernel's counters.

Standard library only.
"""

import ctypes
import os
import socket
import subprocess
import time
from pathlib import Path

import guest_console

# A file system of the guest's own.
SHARED = Path("/dev/shm")  # noqa: S108
CONFIG = SHARED / "agent.yaml"
MODULES = SHARED / "rdma_modules"
# Debian's packages, laid out by the first process.
PEER = Path("/dev/peer")
DISCARD_PORT = 9
# Linux, arch/x86/entry/syscalls/syscall_64.tbl.
FINIT_MODULE, DELETE_MODULE = 313, 176


class Keeper:
    """The guest's agent and the kernel. A method's name is an operation of the host's."""

    def __init__(self):
        self.agent = None

    def start(self, command, environment, config):
        """Start the agent; what it says goes to the console."""
        CONFIG.write_text(config)
        CONFIG.chmod(0o600)
        self.agent = subprocess.Popen(
            [*command, "--config", str(CONFIG)],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
        )
        return {}

    def run(self, command, environment, timeout_s):
        """Run a program to its end; its exit status and the end of what it said."""
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return {"status": done.returncode, "output": done.stdout[-8000:]}

    def end(self, timeout_s):
        """Ask the agent to end; its exit status, None if it does not."""
        self.agent.terminate()
        try:
            return {"status": self.agent.wait(timeout_s)}
        except subprocess.TimeoutExpired:
            return {"status": None}

    def greet(self, address):
        """Send a datagram to another guest, whose MAC address is known afterwards."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as greeting:
            greeting.sendto(b"", (address, DISCARD_PORT))
        return {}

    def usage(self):
        """Processor seconds of the agent so far, its largest size, and whether it runs."""
        stat = Path(f"/proc/{self.agent.pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
        return {"cpu_s": seconds, "status": self.agent.poll()}

    def interface(self, name):
        """The kernel's counters of an interface."""
        return guest_console.counters(Path(f"/sys/class/net/{name}/statistics"))

    def make_rdma(self, cards):
        """Load rdma_rxe and make a device for each card; the kernel then has UDP port 4791."""
        for name in (MODULES / "order").read_text().split():
            with (MODULES / name).open("rb") as module:
                system_call(FINIT_MODULE, module.fileno(), b"", 0)
        for device, card in cards.items():
            rdma("link", "add", device, "type", "rxe", "netdev", card)
        return {}

    def remove_rdma(self, devices):
        """Remove the devices and the modules; port 4791 is free again."""
        for device in devices:
            rdma("link", "delete", device)
        for name in reversed((MODULES / "order").read_text().split()):
            system_call(DELETE_MODULE, name.removesuffix(".ko").encode(), os.O_NONBLOCK)
        return {}

    def rdma(self, device):
        """The kernel's counters of an RDMA device, when it no longer shows those of a while ago."""
        folder = Path(f"/sys/class/infiniband/{device}/ports/1/hw_counters")
        time.sleep(2 * int((folder / "lifespan").read_text()) / 1000)
        return guest_console.counters(folder)


def rdma(*words):
    """Call `rdma` of the packages."""
    command = ["/usr/bin/rdma", *words]
    done = subprocess.run(
        command, preexec_fn=lambda: os.chroot(PEER), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def system_call(*arguments):
    """Make a system call that Python has no function for."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(arguments))


if __name__ == "__main__":
    guest_console.serve(Keeper())
