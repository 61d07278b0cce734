"""The local file of an agent: what it may do. Nothing from the network can widen it."""

import fnmatch
import ipaddress
import logging
import re
import socket
import stat
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from dataplane.errors import InputError, Problem
from emulator.control.reach import is_one_host, is_public
from emulator.control.topics import NAME_PATTERN
from emulator.control.transport import MqttVersion

__all__ = ["AgentConfig", "read_agent_config"]

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Name = Annotated[str, Field(pattern=rf"^{NAME_PATTERN}$")]

_LOG: Final = logging.getLogger(__name__)
_LOGIN_WITH_PASSWORD: Final = re.compile(r"//[^/@]*:[^/]*@")
_OTHERS: Final = stat.S_IRGRP | stat.S_IROTH
_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


def _host_name() -> str:
    return socket.gethostname().split(".", maxsplit=1)[0]


class AgentConfig(BaseModel):
    """Keys of the agent's file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name = Field(default_factory=_host_name, validate_default=True)
    """Name that the controller knows, unique on the broker; default: the name of the host."""
    broker: SecretStr
    """`mqtt[s]://[user:password@]host:port`."""
    broker_password_file: Path | None = None
    """File whose first line is the password of the broker's user, instead of one in the URL."""
    mqtt_version: MqttVersion = 5
    """Version of the protocol that the broker is spoken to in."""
    allowed_prefixes: tuple[IPNetwork, ...] = (_LOOPBACK,)
    """The agent sends only to addresses inside these; default: loopback only."""
    allow_public: bool = False
    """Accept prefixes with addresses that are not of private, shared or benchmarking ranges."""
    allow_default_route: bool = False
    """Let wires send to addresses that only the default route leads to."""
    rate_cap_bps: Annotated[int, Field(gt=0)] | None = None
    """The sum of the rates of the agent's wires, in bits per second of wall time, must not be
    larger. Required as soon as a prefix reaches beyond loopback."""
    allow_device_rate: bool = False
    """Let RDMA devices carry NICs: they send at the rate of their port, whatever `rate_cap_bps`
    is."""
    interfaces: tuple[Annotated[str, Field(min_length=1, max_length=300)], ...] = ()
    """Interfaces that a driver may open: names, or NAMESPACE/NAME, with `*` for any; default: none
    but loopback."""
    bind_address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address("127.0.0.1")
    """Address on which the wires receive."""
    controller_address: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None
    """Address under which this host reaches the controller's HTTP, instead of the one that the
    controller names: for hosts behind a translation of addresses."""
    run: Name | None = None
    """Serve only this run; default: any run that asks for this agent."""
    exit_with_controller: bool = False
    """End when the run is over or its controller is gone, instead of waiting for the next."""

    @model_validator(mode="after")
    def _check_reach(self) -> "AgentConfig":
        public = [prefix for prefix in self.allowed_prefixes if is_public(prefix)]
        if public and not self.allow_public:
            raise ValueError(f"{public[0]} has public addresses: needs allow_public: true")
        beyond = [prefix for prefix in self.allowed_prefixes if not prefix.is_loopback]
        if beyond and self.rate_cap_bps is None:
            raise ValueError(f"rate_cap_bps is required, because {beyond[0]} is not loopback")
        for key in ("bind_address", "controller_address"):
            address = getattr(self, key)
            if address is not None and not self.allows(str(address)):
                raise ValueError(f"{key} {address} is outside of allowed_prefixes")
        return self

    def allows(self, address: str) -> bool:
        """Return whether traffic may go to an address.

        A name, garbage, a group and everybody's address never may.
        """
        try:
            host = ipaddress.ip_address(address)
        except ValueError:
            return False
        return is_one_host(host) and any(host in prefix for prefix in self.allowed_prefixes)

    def allows_interface(self, namespace: str | None, interface: str | None) -> bool:
        """Return whether a driver may open an interface.

        Namespace and name are compared one by one, so that a `*` never spans both.
        """
        if interface is None:
            return False
        name = (interface,) if namespace is None else (namespace, interface)
        return all(map(_is_name, name)) and any(
            _matches(name, tuple(pattern.split("/"))) for pattern in self.interfaces
        )


def _is_name(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..")


def _matches(name: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(name) == len(pattern) and all(map(fnmatch.fnmatchcase, name, pattern))


def read_agent_config(path: Path) -> AgentConfig:
    """Read an agent's file; raises `InputError` with every problem in it."""
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise InputError(Problem(str(path), what, "name a readable file")) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # The text of the error may quote the line that holds the password.
        what = f"is not YAML ({type(error).__name__})"
        raise InputError(Problem(str(path), what, "see docs/control.md")) from None
    try:
        config = AgentConfig.model_validate(document)
    except ValidationError as error:
        raise InputError(*_problems(path, error)) from None
    _look_at_mode(path, config)
    return config


def _look_at_mode(path: Path, config: AgentConfig) -> None:
    """Warn of a password that others can read."""
    has_password = _LOGIN_WITH_PASSWORD.search(config.broker.get_secret_value())
    if has_password and path.stat().st_mode & _OTHERS:
        _LOG.warning("%s holds a password and others can read it: chmod 600", path)


def _problems(path: Path, error: ValidationError) -> list[Problem]:
    return [
        Problem(
            str(path),
            detail["msg"],
            "see docs/control.md for the keys of an agent's file",
            place=".".join(str(part) for part in detail["loc"]),
        )
        for detail in error.errors(include_input=False, include_url=False)
    ]
