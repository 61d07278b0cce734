"""A virtual machine with the host's files, read-only, and a kernel and network cards of its own.

The host's Python, its virtual environment and this checkout are in the guest under the same paths,
so that what runs in the guest is what the tests run with; nothing is installed. libibverbs and its
provider come from Debian's packages, laid below.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kernel_peer.machine import (
    RDMA_MODULES,
    VIRTIO_MODULES,
    Card,
    KernelPeer,
    command_without_network,
    initial_tree,
    launch,
    packed,
    put_modules,
    put_script,
    shared_folder,
)

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
MODULES = (*VIRTIO_MODULES, "overlay")
ANSWER_TIMEOUT_S = 60.0
AGENT = (sys.executable, "-m", "emulator", "agent")


@dataclass(frozen=True)
class Plug:
    """A network card as the guest uses it."""

    name: str
    card: Card
    addresses: Sequence[str]
    """IPv4 addresses with the length of their prefix."""
    mtu_bytes: int
    is_for_traffic: bool = True

    @property
    def rdma(self) -> str:
        """Name of the software RDMA device on the card, when there is one."""
        return f"rxe_{self.name}"


@dataclass
class Guest:
    """A running virtual machine."""

    name: str
    peer: KernelPeer
    plugs: Sequence[Plug]
    _has_rdma: bool = False

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Have the keeper do something, and return its answer."""
        self.peer.ask(operation, **arguments)
        return self.peer.wait_answer(ANSWER_TIMEOUT_S)

    def said(self) -> str:
        """Return the last lines of the console, the agent's among them."""
        self.ask("usage")
        return self.peer.said()

    def start_agent(self, config: str) -> None:
        """Start `rankwire agent` with a file of its own."""
        environment = {"PYTHONPATH": str(REPOSITORY)}
        self.ask("start", command=AGENT, environment=environment, config=config)

    def make_rdma(self) -> None:
        """Make an RDMA device on each card for traffic, unless they are there."""
        if not self._has_rdma:
            self.ask("make_rdma", cards={plug.rdma: plug.name for plug in self._for_traffic()})
        self._has_rdma = True

    def remove_rdma(self) -> None:
        """Remove the RDMA devices, if they are there."""
        if self._has_rdma:
            self.ask("remove_rdma", devices=[plug.rdma for plug in self._for_traffic()])
        self._has_rdma = False

    def _for_traffic(self) -> list[Plug]:
        return [plug for plug in self.plugs if plug.is_for_traffic]


def launch_guest(
    name: str, folder: Path, work: Path, plugs: Sequence[Plug], descriptors: Sequence[int] = ()
) -> Guest:
    """Start a guest of the packages in `folder`; it boots while others do.

    `work` is for files of this guest; `descriptors` are those that its cards name.
    """
    archive = _initial_file_system(folder, work, plugs)
    command = [*command_without_network(folder, archive), *shared_folder("host", Path("/"))]
    for number, plug in enumerate(plugs):
        command += plug.card.options(number)
    return Guest(name, launch(command, descriptors), plugs)


def _initial_file_system(folder: Path, work: Path, plugs: Sequence[Plug]) -> Path:
    """Make an initramfs of busybox, the modules, the keeper and what the cards are."""
    tree = initial_tree(folder, work, MODULES, HERE / "guest_init.sh")
    put_modules(folder, RDMA_MODULES, tree / "rdma_modules")
    put_script(HERE / "guest_keeper.py", tree)
    (tree / "machine").write_text(f"PYTHON='{sys.executable}'\n")
    cards = (f"{p.name} {p.card.mac} {p.mtu_bytes} {' '.join(p.addresses)}\n" for p in plugs)
    (tree / "cards").write_text("".join(cards))
    return packed(tree, work / "initramfs.cpio")
