"""Advice in errors: what to write instead of a call that fits no signature, or of a name that does not exist."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def call_advice(
    name: str, signature: inspect.Signature, positional: Sequence[object], named: Mapping[str, object]
) -> TypeError | None:
    """Return the error for a call that does not fit a signature, with a call that does; None if the call fits.

    Examples
    --------
    >>> def windows(*, size, advance=None): ...
    >>> print(call_advice("windows", inspect.signature(windows), [60_000], {}))
    windows() takes size= by name: write windows(size=60000)
    """
    try:
        signature.bind(*positional, **named)
    except TypeError:
        parameters = signature.parameters
        unknown = [keyword for keyword in named if keyword not in parameters]
        if unknown:
            return TypeError(_unknown(name, unknown[0], parameters))
        by_place = [parameter.name for parameter in parameters.values() if parameter.kind in _BY_PLACE]
        if len(positional) > len(by_place):
            return TypeError(_too_many(name, signature, positional, named))
        return TypeError(_missing(name, signature, positional, named))
    return None


def _unknown(name: str, keyword: str, parameters: Iterable[str]) -> str:
    plain = snake_case(keyword)
    shorter = (parameter for parameter in parameters if plain.startswith(f"{parameter}_"))  # `key` for `key_serde`
    nearest = next(shorter, None) or nearest_name(plain, parameters)
    hint = f"did you mean {nearest}=?" if nearest else f"it has {_keywords(parameters) or 'none'}"
    return f"{name}() has no argument {keyword}=, an unexpected keyword: {hint}"


def _too_many(
    name: str, signature: inspect.Signature, positional: Sequence[object], named: Mapping[str, object]
) -> str:
    parameters = signature.parameters.values()
    by_place = [parameter.name for parameter in parameters if parameter.kind in _BY_PLACE]
    by_name = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in named
    ]
    extra = positional[len(by_place) :]
    if extra and not isinstance(extra[0], type):
        by_name = [parameter for parameter in by_name if parameter not in ("key", "value")]  # these take types
    if len(extra) > len(by_name):
        return f"{name}() was given {len(positional)} positional arguments: it takes {signature}"
    moved = {**dict(zip(by_name, extra, strict=False)), **named}
    arguments = [*map(_shown, positional[: len(by_place)]), *(f"{key}={_shown(value)}" for key, value in moved.items())]
    return f"{name}() takes {_keywords(list(moved)[: len(extra)])} by name: write {name}({', '.join(arguments)})"


def _missing(name: str, signature: inspect.Signature, positional: Sequence[object], named: Mapping[str, object]) -> str:
    bound = signature.bind_partial(*positional, **named).arguments
    single = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY, _BY_PLACE[0])
    absent = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind in single and parameter.default is parameter.empty and parameter.name not in bound
    ]
    needed = [
        f"{parameter.name}=" if parameter.kind is parameter.KEYWORD_ONLY else parameter.name for parameter in absent
    ]
    examples = [f"{parameter}..." if parameter.endswith("=") else parameter for parameter in needed]
    arguments = [*map(_shown, positional), *(f"{key}={_shown(value)}" for key, value in named.items()), *examples]
    return f"{name}() needs {' and '.join(needed)}: write {name}({', '.join(arguments)})"


def _keywords(names: Iterable[str]) -> str:
    return ", ".join(f"{name}=" for name in names)


def _shown(value: object) -> str:
    text = value.__name__ if isinstance(value, type) else repr(value)
    return text if len(text) <= 40 and not text.startswith("<") else "..."


def snake_case(name: str) -> str:
    """Return a name of Java in the spelling of Python.

    Examples
    --------
    >>> snake_case("flatMapValues"), snake_case("map_values")
    ('flat_map_values', 'map_values')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def nearest_name(name: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the candidate that is most like `name`; None if no candidate is similar enough.

    Parameters
    ----------
    cutoff : float
        The least similarity, from 0 (anything) to 1 (equal).

    Examples
    --------
    >>> nearest_name("flight", ["flights", "weather"]), nearest_name("train", ["flights", "weather"])
    ('flights', None)
    """
    return next(iter(difflib.get_close_matches(name, list(candidates), 1, cutoff)), None)


def public_names(kind: type) -> list[str]:
    """Return the attributes that are public, in order."""
    return sorted(name for name in dir(kind) if not name.startswith("_"))


def name_advice(name: str, own: Sequence[str], spellings: Mapping[str, str]) -> str:
    """Return what to write instead of an attribute that does not exist.

    Parameters
    ----------
    name : str
    own : sequence of str
        The names of the attributes that exist.
    spellings : mapping of str to str
        The names of Kafka Streams, and what to write for them here.


    Examples
    --------
    >>> name_advice("mapValues", ["map", "map_values"], {}), name_advice("agg", ["count"], {"agg": "aggregate()"})
    ('it is called map_values here', 'write aggregate()')
    """
    plain = snake_case(name)
    if plain in own:
        return f"it is called {plain} here"
    if plain in spellings:
        return f"write {spellings[plain]}"
    nearest = nearest_name(plain, own, cutoff=0.7)
    return f"did you mean {nearest}?" if nearest else f"there are {', '.join(own)}"


def spoken(error: BaseException) -> str:
    """Return the text of an error. For an attribute that an object of kstreams does not have, add what to write.

    Records and contexts are not `Advised` objects, because their attributes are read for each record.

    Examples
    --------
    >>> from kstreams.record import Record
    >>> try:
    ...     Record(key=1, value=2).withValue(3)
    ... except AttributeError as error:
    ...     print(spoken(error))
    'Record' object has no attribute 'withValue': it is called with_value here
    """
    kind: Any = type(getattr(error, "obj", None))
    if not isinstance(error, AttributeError) or issubclass(kind, Advised) or not hasattr(kind, "_spellings"):
        return str(error)
    return f"{error}: {name_advice(str(error.name), public_names(kind), kind._spellings)}"


class Advising(type):
    """The metaclass of classes whose errors for wrong calls and unknown attributes say what to write.

    `_spellings` of a class says what to write for names of Kafka Streams. Such a class is `Advised` as well.
    """

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        for item_name, item in list(vars(cls).items()):
            if isinstance(item, classmethod | staticmethod):
                bound = int(isinstance(item, classmethod))
                setattr(cls, item_name, type(item)(_advised(item.__func__, f"{name}.{item_name}", bound)))

    def __call__(cls, *positional: object, **named: object) -> Any:
        try:
            return super().__call__(*positional, **named)
        except TypeError:
            signature = inspect.signature(cls.__init__)  # type: ignore[misc]
            public_signature = signature.replace(parameters=list(signature.parameters.values())[1:])
            advice = call_advice(cls.__name__, public_signature, positional, named)
            if advice is None:
                raise
            raise advice from None

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(cls, name: str) -> Any:
            raise _no_attribute(cls, name, cls.__name__)


class Advised:
    """An object whose errors for unknown attributes say what to write."""

    __slots__ = ()
    _spellings: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _no_attribute(type(self), name, type(self).__name__)


class AdvisedCalls(Advised):
    """An object whose errors for wrong calls of methods say what to write. Not for methods that take each record."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, item in list(vars(cls).items()):
            if not name.startswith("_") and inspect.isfunction(item):
                setattr(cls, name, _advised(item, name))


def _no_attribute(kind: type, name: str, title: str) -> AttributeError:
    if name.startswith("_"):
        return AttributeError(f"{title!r} has no attribute {name!r}", name=name)
    advice = name_advice(name, public_names(kind), kind._spellings)  # type: ignore[attr-defined]
    return AttributeError(f"{title} has no {name}: {advice}", name=name)


def _advised(function: Callable[..., Any], name: str, bound: int = 1) -> Callable[..., Any]:
    """Return the function with errors that say how to call it.

    Parameters
    ----------
    function : callable
    name : str
    bound : int
        The number of first arguments that the user does not write, such as `self`.
    """

    def call(*positional: object, **named: object) -> Any:
        try:
            return function(*positional, **named)
        except TypeError:
            signature = inspect.signature(function)
            public_signature = signature.replace(parameters=list(signature.parameters.values())[bound:])
            advice = call_advice(name, public_signature, positional[bound:], named)
            if advice is None:
                raise
            raise advice from None

    # Errors name an operator by the method that the user has called.
    call.__code__ = call.__code__.replace(co_name=function.__name__)
    return wraps(function)(call)
