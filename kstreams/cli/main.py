"""`main`: runs one command and turns errors into one sentence and an exit status.

Exit status: 0 done; 1 the command could not do what was asked; 2 it was asked wrongly; 130 interrupted.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence

from kstreams.errors import KStreamsError

INTERRUPTED = 130
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; default: those of the process. `--debug` may stand anywhere before a `--`.

    Returns
    -------
    int
        The exit status.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    kstreams ...
    0
    """
    given, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    _configure_logging(debug)
    if debug:
        return _run(given)
    try:
        return _run(given)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        sys.stderr.write(f"kstreams: {sentence(error)}\n")
        return 1


def sentence(error: BaseException) -> str:
    """What an error says to a user, on one line where it is ours.

    Examples
    --------
    >>> sentence(OSError(errno.ENOSPC, "No space left on device", "/data/log"))
    'the disk is full: /data/log; free some space and run the command again'
    """
    if isinstance(error, KStreamsError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        place = f": {error.filename}" if error.filename else ""
        return f"the disk is full{place}; free some space and run the command again"
    if isinstance(error, OSError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error} (--debug shows where; please report it)"


def _run(arguments: list[str]) -> int:
    from kstreams.cli.commands import application

    try:
        application()(args=arguments, prog_name="kstreams")
    except SystemExit as done:
        return _status(done.code)
    return 0


def _status(code: object) -> int:
    return code if isinstance(code, int) else int(code is not None)


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ours = [argument for argument in arguments[:end] if argument != "--debug"]
    return ours + arguments[end:], len(ours) < end


def _configure_logging(debug: bool) -> None:
    import logging

    form = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s" if debug else "kstreams: %(message)s"
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, format=form, stream=sys.stderr)
    if debug:
        logging.getLogger("py4j").setLevel(logging.INFO)
