"""The laboratory: started once for all tests that use it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.emulator.control.processes import mosquitto
from tests.kernel_peer import packages
from tests.vm_lab.cable import NoCableError, cable
from tests.vm_lab.laboratory import HOST_TO_GUEST, MTU_BYTES, Laboratory


@pytest.fixture(scope="session")
def all_guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """Yield the laboratory; what is dead in it is not started again."""
    try:
        folder = packages.prepare(packages.cache_folder())
    except packages.UnavailableError as unavailable:
        pytest.skip(f"no virtual machines: {unavailable}")
    work = tmp_path_factory.mktemp("vm-lab")
    with contextlib.ExitStack() as stack:
        broker, _ = stack.enter_context(mosquitto(work))
        made = Laboratory(folder, work, broker, stack)
        try:
            laid = cable(f"{HOST_TO_GUEST}/24", mtu_bytes=MTU_BYTES)
            made.cable = stack.enter_context(laid)
        except NoCableError as error:
            made.no_cable = str(error)
        yield made


@pytest.fixture
def laboratory(all_guests: Laboratory) -> Laboratory:
    """Return the laboratory with everything running."""
    all_guests.make_ready()
    return all_guests
