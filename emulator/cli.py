"""The command `rankwire`: one module of `emulator.commands` per subcommand.

Exit status: 0 done, 1 a run failed or a gate did not hold, 2 the input is wrong, 130 interrupted.
Progress, logs and problems go to stderr, results to stdout.
"""

import argparse
import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence

from dataplane import __version__
from dataplane.errors import RankwireError

__all__ = ["build_parser", "main"]

_COMMANDS = (
    "run",
    "predict",
    "trace",
    "lab",
    "sweep",
    "compare",
    "report",
    "agent",
    "doctor",
)

_EPILOG = """\
examples:
  rankwire run loopback-clos                       drive the demo lab with the demo job
  rankwire run my-lab.yaml --trace traces/         drive your lab with your traces
  rankwire predict clos-64 --set dcqcn.preset=paper
  rankwire sweep lab_configs/sweeps/dcqcn-ecn.yaml
  rankwire compare runs/A runs/B

exit status: 0 done, 1 the run failed or a gate did not hold, 2 the input is wrong,
130 interrupted"""


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command, or of one subcommand; each sets `execute`.

    One alone spares the imports of all the others.
    """
    parser = argparse.ArgumentParser(
        prog="rankwire",
        description="Drives a lab's NICs and switches with the traffic of a real AI job and "
        "measures what the network did to every collective.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"rankwire {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in _COMMANDS if only is None else (only,):
        module_name = f"emulator.commands.{name}"
        if importlib.util.find_spec(module_name) is not None:
            importlib.import_module(module_name).register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a foreseen error is never a traceback."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    only = words[0] if words and words[0] in _COMMANDS else None
    try:
        options = build_parser(only).parse_args(words)
        status: int = options.execute(options)
        sys.stdout.flush()
    except RankwireError as error:
        _complain(error)
        return error.exit_status
    except KeyboardInterrupt:
        print("rankwire: interrupted; what was recorded so far is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _silence_stdout()
        return 1
    except MemoryError:
        print("rankwire: out of memory; use a smaller job or --size-scale", file=sys.stderr)
        return 1
    return status


def _complain(error: RankwireError) -> None:
    for line in str(error).splitlines():
        print(f"rankwire: {line}", file=sys.stderr)


def _silence_stdout() -> None:
    """Keep the interpreter from complaining again when it flushes a closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
