"""A cluster of Slurm on this machine: a controller, and a daemon for each node, all on loopback.

Each node's daemon has a host name of its own (a UTS namespace), as each machine of a cluster has.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.emulator.control.processes import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol")
CONFIGURATION = """\
ClusterName=rankwire
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={directory}/munge.socket
SlurmUser=root
StateSaveLocation={directory}
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
{nodes}
PartitionName=lab Nodes=ALL Default=YES State=UP
"""


def need_slurm() -> None:
    """Skip where there is none, or no right to start it."""
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin"))
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed: apt-get install munge slurm-wlm")
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode:
        pytest.skip("nodes with host names of their own need root")


def free_ports(count: int) -> list[int]:
    """Return TCP ports of loopback that nobody has now."""
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [server.getsockname()[1] for server in servers]


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up."""

    directory: Path
    environment: dict[str, str]

    def call(self, *words: str) -> str:
        """Call one of Slurm's commands; returns what it prints."""
        done = subprocess.run(
            words,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *words: str) -> int:
        """Submit a job; returns its number."""
        return int(self.call("sbatch", "--parsable", *words))

    def state(self, job: int) -> str:
        """Return the state of a job, and its exit status."""
        shown = self.call("scontrol", "--oneliner", "show", "job", str(job)).split()
        fields = dict(word.split("=", 1) for word in shown if "=" in word)
        return f"{fields['JobState']} {fields['ExitCode']}"


@contextlib.contextmanager
def cluster(directory: Path, nodes: Sequence[str], **environment: str) -> Iterator[Cluster]:
    """A cluster of some nodes, for as long as the block lasts."""
    need_slurm()
    controller_port, *ports = free_ports(1 + len(nodes))
    lines = [
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1"
        for node, port in zip(nodes, ports, strict=True)
    ]
    text = CONFIGURATION.format(
        directory=directory, controller_port=controller_port, nodes="\n".join(lines)
    )
    (directory / "slurm.conf").write_text(text)
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin"))
    env = {**os.environ, **environment, "SLURM_CONF": str(directory / "slurm.conf")}
    env["PATH"] = os.pathsep.join(filter(None, (environment.get("PATH"), path)))
    made = Cluster(directory, env)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_running(made, *_munge(directory)))
        until((directory / "munge.socket").exists)
        stack.enter_context(_running(made, "slurmctld", "-D"))
        for node in nodes:
            start = f"hostname {node} && exec slurmd -D -N {node}"
            stack.enter_context(_running(made, "unshare", "--uts", "sh", "-c", start))
        until(lambda: _idle(made) == len(nodes))
        yield made


def _munge(directory: Path) -> list[str]:
    key = directory / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    files = ("socket", "pid-file", "log-file", "seed-file")
    options = [f"--{name}={directory}/munge.{name.removesuffix('-file')}" for name in files]
    return ["munged", "--foreground", "--force", f"--key-file={key}", *options]


@contextlib.contextmanager
def _running(made: Cluster, *words: str) -> Iterator[None]:
    with (made.directory / f"{words[0]}.log").open("ab") as log:
        process = subprocess.Popen(words, env=made.environment, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _idle(made: Cluster) -> int:
    """Nodes that wait for work; none while the controller does not answer."""
    asked = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--states=idle"],
        env=made.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return len(asked.stdout.splitlines())
