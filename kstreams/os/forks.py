"""Objects of a process that its forked children must not use, such as those with threads and connections.

A child has a copy of every object, but no threads. A copy that waits for a thread would wait for ever, a copy that
flushes would write what the parent writes too, and a copy that is released would close the parent's connection. So in
the child, such an object raises an error at every access except `close`, which does nothing.
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
_fork_mutexes: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_held_mutexes: list[Any] = []


def of_one_process(thing: Any, name: str, error: type[KStreamsError]) -> None:
    """Let the copy of an object in a forked child raise an error at every access.

    Parameters
    ----------
    thing : object
    name : str
        What the object is to a user: the subject of the error message.
    error : type
        The type of the error.
    """
    message = (
        f"{name} was opened in process {os.getpid()}, and this is a child that was forked from it: threads and "
        "connections stay behind. Open another one here, or start processes with "
        'multiprocessing.get_context("spawn")'
    )
    in_child(thing, lambda copy: _refuse(copy, error, message))


def in_child(thing: Any, action: Callable[[Any], None]) -> None:
    """Call an action with an object in each forked child. The action must not refer to the object."""
    _actions[thing] = action


def still_while_forking(owner: Any, mutex: Any) -> None:
    """Hold a mutex while the process forks, as long as its owner lives, so that the child's copy is consistent."""
    _fork_mutexes[owner] = mutex


def of_module(mutex: Any) -> Any:
    """Return the mutex, which will be free in a forked child even if a thread of the parent holds it."""
    os.register_at_fork(after_in_child=mutex._at_fork_reinit)
    return mutex


def end_child_of(process: int, thread: str, error: BaseException) -> None:
    """End this process if it is a forked child that has returned into a thread's work instead of calling `os._exit`."""
    if os.getpid() != process:
        logger.error("a child that a function forked came back into %s, and ends: %s", thread, error)
        os._exit(1)


def finalized_here(thing: Any, function: Callable[..., None], *arguments: Any) -> finalize[..., Any]:
    """Return `weakref.finalize` that does nothing in a forked child."""
    return finalize(thing, _only_in, os.getpid(), function, *arguments)


def _only_in(process: int, function: Callable[..., None], *arguments: Any) -> None:
    if os.getpid() == process:
        function(*arguments)


def _refuse(thing: Any, error: type[KStreamsError], message: str) -> None:
    # Never released: RocksDB, SQLite and Kafka's client would wait for their threads.
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
    for mutex in list(_fork_mutexes.values()):
        mutex.acquire()
        _held_mutexes.append(mutex)


def _after_in_parent() -> None:
    while _held_mutexes:
        _held_mutexes.pop().release()


def _after_in_child() -> None:
    _held_mutexes.clear()
    for thing, action in list(_actions.items()):
        with suppress(Exception):  # an error of one action must not skip the others
            action(thing)
    _actions.clear()
    _fork_mutexes.clear()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
