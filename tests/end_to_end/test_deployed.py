"""The files of docs/deployment where they belong: a host of its own, made of namespaces.

Inside, /etc, /opt, /run, the host name and the network are the test's; what the unit starts is
started as it stands, with the unit's capabilities. It is not systemd that starts it.
"""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from metrics.records import load
from tests.end_to_end.commands import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.privileged]

DEPLOYMENT = REPOSITORY / "docs" / "deployment"
UNIT = DEPLOYMENT / "rankwire-agent.service"
HOST, BROKER = "rack1-host3", "broker.lab"
USERS = ("controller", "rank-agent")
LAB = {
    "name": "deployed",
    "topology": {
        "kind": "explicit",
        "nics": [{"name": "n0"}, {"name": "n1"}],
        "switches": [{"name": "s0", "ports": 2}],
        "links": [{"ends": [f"n{rank}", f"s0:{rank}"], "rate_gbps": 100} for rank in range(2)],
    },
    "agents": {"spawn": False, "placement": {HOST: ["n0", "n1", "s0"]}},
    "control": {
        "broker": f"mqtts://controller@{BROKER}:8883",
        "password_file": "/etc/rankwire/controller-password",
    },
    "time_dilation": 2000,
    "default_profile": "all-to-all",
}
SCRIPT = """
set -eu
root="$1"; shift
for place in /opt/*; do
  if [ -d "$place" ]; then mkdir -p "$root$place"; mount --rbind "$place" "$root$place"; fi
done
mount --rbind "$root/opt" /opt
mount --bind "$root/etc" /etc
mount -t tmpfs none /run
cp -r "$root/run/." /run
hostname "$(cat /etc/hostname)"
ip link set lo up
mosquitto -c /etc/mosquitto/mosquitto.conf &
broker=$!
trap 'kill "$broker"' EXIT
until mosquitto_is_up; do kill -0 "$broker"; sleep 0.1; done
setpriv --no-new-privs --bounding-set "-all,$CAPABILITIES" --inh-caps "-all,$CAPABILITIES" \\
  --ambient-caps "-all,$CAPABILITIES" $EXEC_START &
agent=$!
status=0
/opt/rankwire/bin/rankwire run "$@" || status=$?
kill -"$KILL_SIGNAL" "$agent"
wait "$agent"
exit "$status"
"""
UP = 'mosquitto_is_up() { [ -n "$(ss -Hltn "sport = :8883")" ]; }\n'


def service() -> dict[str, str]:
    """Return the unit's section of the service."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return dict(unit["Service"])


def need_a_host_of_our_own() -> None:
    """Skip where there can be none."""
    programs = ("openssl", "mosquitto", "mosquitto_passwd", "setpriv", "ip", "ss")
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin"))
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed")
    made = ["unshare", "--mount", "--net", "--uts", "mount", "-t", "tmpfs", "none", "/run"]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("a host made of namespaces needs root")


def install(root: Path) -> None:
    """Put every file where its first line, or the page, says that it belongs."""
    shutil.copytree("/etc", root / "etc", symlinks=True, ignore_dangling_symlinks=True)
    etc = root / "etc"
    (etc / "hostname").write_text(f"{HOST}.lab\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost {BROKER}\n")
    for directory in ("rankwire", "mosquitto/certs", "mosquitto/conf.d"):
        (etc / directory).mkdir(parents=True, exist_ok=True)
    shutil.copy(DEPLOYMENT / "agent.yaml", etc / "rankwire")
    shutil.copy(DEPLOYMENT / "mosquitto.conf", etc / "mosquitto" / "conf.d" / "rankwire.conf")
    (etc / "mosquitto" / "mosquitto.conf").write_text(
        "user root\ninclude_dir /etc/mosquitto/conf.d\n"
    )
    # One login for all agents, as the page says of the example.
    access = (DEPLOYMENT / "mosquitto.acl").read_text().replace("%u", "+")
    (etc / "mosquitto" / "rankwire.acl").write_text(access)
    certify(etc / "mosquitto" / "certs")
    admit(etc, root / "run" / "credentials" / UNIT.name)
    program = root / "opt" / "rankwire" / "bin" / "rankwire"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m emulator "$@"\n'
    )
    program.chmod(0o755)


def certify(directory: Path) -> None:
    """Make a certificate for the broker's name."""
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=b"
    files = ("-keyout", directory / "broker.key", "-out", directory / "broker.crt")
    name = ("-addext", f"subjectAltName=DNS:{BROKER}")
    subprocess.run(["openssl", *words.split(), *name, *files], check=True, capture_output=True)


def admit(etc: Path, credentials: Path) -> None:
    """Give everybody a password: the controller in a file, the agent as a credential."""
    users = etc / "mosquitto" / "rankwire.passwords"
    users.touch(mode=0o600)
    for name in USERS:
        login = ["mosquitto_passwd", "-b", users, name, f"of {name}"]
        subprocess.run(login, check=True, capture_output=True)
    (etc / "rankwire" / "controller-password").write_text("of controller\n")
    credentials.mkdir(parents=True)
    (credentials / "broker-password").write_text("of rank-agent\n")


def test_a_job_runs_with_the_files_as_they_stand(tmp_path: Path) -> None:
    """Agent as the unit starts it, broker with TLS, passwords and access list; all end in order."""
    need_a_host_of_our_own()
    root = tmp_path / "root"
    install(root)
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(LAB), encoding="utf-8")
    unit = service()
    names = unit["AmbientCapabilities"].lower().split()
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin")),
        "EXEC_START": unit["ExecStart"],
        "KILL_SIGNAL": unit["KillSignal"].removeprefix("SIG"),
        "CAPABILITIES": ",".join(f"+{name.removeprefix('cap_')}" for name in names),
        "SSL_CERT_FILE": "/etc/mosquitto/certs/broker.crt",
    }
    assert re.fullmatch(r"[\w./ -]+", unit["ExecStart"]), shlex.split(unit["ExecStart"])
    run = ("lab.yaml", "--quiet", "--size-scale", "0.01", "--out", "kept")
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--uts", "sh", "-c", UP + SCRIPT, "sh", str(root), *run],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    control = load(tmp_path / "kept").run["control"]
    assert control["broker"] == f"mqtts://{BROKER}:8883"
    assert [agent["name"] for agent in control["agents"]] == [HOST]
