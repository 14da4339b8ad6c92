"""`main`: runs one command, and prints an error as one sentence with an exit status."""

from __future__ import annotations

import errno
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from kstreams.cli import lines
from kstreams.cli.output import INTERRUPTED, TERMINATED
from kstreams.errors import KStreamsError
from kstreams.own_files import explanation

_FILE_ERRORS = {
    errno.ENOSPC: "the disk is full: {0}; free some space and run the command again",
    errno.EDQUOT: "the disk quota is used up: {0}; free some space and run the command again",
    errno.EACCES: "there is no permission for {0}: change its owner or mode, or name another place",
    errno.EPERM: "there is no permission for {0}: change its owner or mode, or name another place",
    errno.EROFS: "{0} lies on a file system that is mounted read-only: name another place",
    errno.EEXIST: "{0} is there already, and not a folder: name another place",
    errno.ENOTDIR: "{0} leads through a file as if it were a folder: name another place",
    errno.EISDIR: "{0} is a folder: name a file",
    errno.ENOENT: "there is no file {0}: check the name",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n) and run the command again",
    errno.EPIPE: "nobody reads the output any more",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the program. Default: the arguments of the process. `--debug` may stand anywhere before
        `--`.

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
    words, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    lines.begin(debug)
    with _termination() as terminated:
        status = _run(words) if debug else _run_with_sentence(words)
    if status == INTERRUPTED:
        exec("")  # CPython sends itself SIGINT at its end if the text that it executed last was interrupted
    return TERMINATED if terminated.is_set() and status == INTERRUPTED else status


def sentence(error: BaseException) -> str:
    """Return the text of an error for a user.

    Examples
    --------
    >>> sentence(OSError(errno.ENOSPC, "No space left on device", "/data/log"))
    'the disk is full: /data/log; free some space and run the command again'
    """
    if isinstance(error, KStreamsError):
        return str(error)
    if isinstance(error, ImportError) and (text := explanation(error)):
        return text
    if isinstance(error, OSError):
        text = _FILE_ERRORS.get(error.errno or 0, "{1}")
        return text.format(error.filename or "what was to be read or written", error)
    return f"unexpected {type(error).__name__}: {error} (--debug shows where; please report it)"


def _run_with_sentence(arguments: list[str]) -> int:
    """Run a command, and print an error as one sentence."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        lines.fail(sentence(error), error)
        return 1


def _run(arguments: list[str]) -> int:
    from kstreams.cli.commands.application import application
    from kstreams.cli.output import end_output, reader_is_gone

    try:
        application()(args=arguments, prog_name="kstreams")
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError) and reader_is_gone(sys.__stdout__ or sys.stdout):
            return 0  # the reader of the output, such as `head`, has ended
        status = _status(done.code)
        if status:
            return status
    with suppress(BrokenPipeError):
        end_output()
    return 0


def _status(code: object) -> int:
    return code if isinstance(code, int) else int(code is not None)


@contextmanager
def _termination() -> Iterator[threading.Event]:
    """Let SIGTERM end a command as Ctrl-C does, which closes open files. The event is set after SIGTERM."""
    terminated = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield terminated
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        terminated.set()
        raise KeyboardInterrupt

    previous_handler = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield terminated
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return options + arguments[end:], len(options) < end
