"""What is open when the process forks: refused in the child, where its threads and connections did not come along.

A child has a copy of every object and none of the threads behind them. A copy that waits for a thread waits for ever,
one that flushes writes what the parent writes too, and one that is released takes the parent's connection along. So in
the child, whatever is open becomes an object that refuses everything but `close`, which does nothing.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, finalize

from kstreams.errors import KStreamsError

logger = logging.getLogger(__name__)

_actions: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()
_still: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_quiet: list[Any] = []


def of_one_process(thing: Any, name: str, error: type[KStreamsError]) -> None:
    """From a fork on, let the child's copy of a thing refuse whatever is asked of it.

    Parameters
    ----------
    thing : object
    name : str
        What it is to a user: the subject of the sentence.
    error : type
        What its methods raise.
    """
    message = (
        f"{name} was opened in process {os.getpid()}, and this is a child that was forked from it: threads and "
        "connections stay behind. Open another one here, or start processes with "
        'multiprocessing.get_context("spawn")'
    )
    in_child(thing, lambda copy: _refuse(copy, error, message))


def in_child(thing: Any, action: Callable[[Any], None]) -> None:
    """Call an action with a thing in each process that is forked from this one; it must not refer to the thing."""
    _actions[thing] = action


def still_while_forking(owner: Any, mutex: Any) -> None:
    """Hold a mutex of a living object while the process forks, so that the child has a whole copy of what it guards."""
    _still[owner] = mutex


def of_module(mutex: Any) -> Any:
    """A mutex of a module, which is free in a child, whoever holds it in the parent."""
    os.register_at_fork(after_in_child=mutex._at_fork_reinit)
    return mutex


def end_child_of(process: int, thread: str, error: BaseException) -> None:
    """End this process, if it is a child in which a thread of its parent went on instead of leaving by `os._exit`."""
    if os.getpid() != process:
        logger.error("a child that a function forked came back into %s, and ends: %s", thread, error)
        os._exit(1)


def finalized_here(thing: Any, function: Callable[..., None], *arguments: Any) -> finalize[..., Any]:
    """`weakref.finalize`, which does nothing in a child."""
    return finalize(thing, _only_in, os.getpid(), function, *arguments)


def _only_in(process: int, function: Callable[..., None], *arguments: Any) -> None:
    if os.getpid() == process:
        function(*arguments)


def _refuse(thing: Any, error: type[KStreamsError], message: str) -> None:
    # Kept for ever: RocksDB, SQLite and Kafka's client wait for their threads when they are released.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    thing.__class__ = _refusing(type(thing), error, message)


def _refusing(kind: type, error: type[KStreamsError], message: str) -> type:
    def refuse(self: Any, name: str) -> Any:
        if name == "close":
            return _nothing
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        raise error(message)

    own = {"__getattribute__": refuse, "__exit__": _nothing, "__del__": _nothing, "__slots__": ()}
    return type(kind.__name__, (kind,), own)


def _nothing(*arguments: Any, **named: Any) -> bool:
    return False


def _before() -> None:
    for mutex in list(_still.values()):
        mutex.acquire()
        _quiet.append(mutex)


def _after_in_parent() -> None:
    while _quiet:
        _quiet.pop().release()


def _after_in_child() -> None:
    _quiet.clear()
    for thing, action in list(_actions.items()):
        with suppress(Exception):  # whatever happens to one, the others are refused
            action(thing)
    _actions.clear()
    _still.clear()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
