"""`of_one_process`: makes objects with threads or connections unusable in forked children.

A child has a copy of every object, but no threads. A copy that waits for a thread would wait for ever, a copy that
flushes would write the same records as the parent, and a copy that is released would close the parent's connection.
Therefore such an object raises an error in the child at every access except `close`, which does nothing.
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
    """Make the copy of an object in a forked child raise an error at every access.

    Parameters
    ----------
    thing : object
    name : str
        The name of the object for users: the subject of the error message.
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


def hold_while_forking(owner: Any, mutex: Any) -> None:
    """Hold a mutex during forks as long as its owner exists, so that the copy in the child is consistent."""
    _fork_mutexes[owner] = mutex


def reset_in_child(mutex: Any) -> Any:
    """Return the mutex. A forked child releases it, even if a thread of the parent holds it."""
    os.register_at_fork(after_in_child=mutex._at_fork_reinit)
    return mutex


def end_child_of(process: int, thread: str, error: BaseException) -> None:
    """End this process if it is a forked child that has returned to the work of a thread without `os._exit`."""
    if os.getpid() != process:
        logger.error("a child that a function has forked returned to %s, and ends: %s", thread, error)
        os._exit(1)


def finalized_here(thing: Any, function: Callable[..., None], *arguments: Any) -> finalize[..., Any]:
    """Return `weakref.finalize` that does nothing in a forked child."""
    return finalize(thing, _call_in_process, os.getpid(), function, *arguments)


def _call_in_process(process: int, function: Callable[..., None], *arguments: Any) -> None:
    if os.getpid() == process:
        function(*arguments)


def _refuse(thing: Any, error: type[KStreamsError], message: str) -> None:
    # An extra reference prevents the release, in which RocksDB, SQLite and Kafka's client would wait for their threads.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    thing.__class__ = _refusing_class(type(thing), error, message)


def _refusing_class(base: type, error: type[KStreamsError], message: str) -> type:
    def refuse(self: Any, name: str) -> Any:
        if name == "close":
            return _do_nothing
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        raise error(message)

    methods = {"__getattribute__": refuse, "__exit__": _do_nothing, "__del__": _do_nothing, "__slots__": ()}
    return type(base.__name__, (base,), methods)


def _do_nothing(*arguments: Any, **options: Any) -> bool:
    return False


def _before_fork() -> None:
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


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
