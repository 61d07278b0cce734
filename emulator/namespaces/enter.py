"""`python enter.py NAMESPACE COMMAND...`: enter a namespace, then become the command.

Started as a file with the standard library alone, so that it costs a few milliseconds.
"""

import ctypes
import os
import sys

_CLONE_NEWNET = 0x4000_0000


def main(arguments: list[str]) -> None:
    """Never returns: the command takes the place of this process, or it ends with status 127."""
    namespace, *command = arguments
    try:
        descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        os.execvp(command[0], command)  # noqa: S606  # a list of words, no shell
    except OSError as error:
        print(f"{command[0]} in namespace {namespace}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
