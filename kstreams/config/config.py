"""`Config`: the settings of an application, checked and typed."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kstreams.config.keys import KEYS, OLD_NAMES, PREFIXES, REFUSED
from kstreams.errors import ConfigError
from kstreams.kernel.advice import nearest_name


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The memory limit of each part, in bytes, for all threads and tasks of the process together.

    Live values get a third of the total, and each other part a twelfth. The remaining third is for memory that cannot
    be counted: growing dicts, gaps between objects, the batch in progress, RocksDB's compactions.

    Parameters
    ----------
    live : int
        Live values of stores, and buffers of suppress operators and joins.
    uncommitted : int
        Changes since the last commit, with the updates in the record cache. During a restore, rows that are not written
        yet.
    block_cache, write_buffers : int
        RocksDB's block cache, and its memtables.
    buffered : int
        Input that is not processed yet, and output that is not sent yet.

    Examples
    --------
    >>> MemoryShares.of(Config.of({"memory.max.bytes": 60_000})).live
    20000
    >>> MemoryShares.of(Config.of({"memory.max.bytes": 60_000, "statestore.live.max.bytes": 5_000})).live
    5000
    """

    live: int
    uncommitted: int
    block_cache: int
    write_buffers: int
    buffered: int

    @classmethod
    def of(cls, config: Config) -> MemoryShares:
        """Return the shares that a configuration sets.

        A key for one part is the maximum of the part. Unless `memory.max.bytes` is set, the total grows with these
        keys, so that a larger part needs no second setting.
        """
        live = config["statestore.live.max.bytes"]
        uncommitted = config["statestore.uncommitted.max.bytes"]
        total: int = config["memory.max.bytes"]
        if "memory.max.bytes" not in config.explicit:
            total = max(total, 3 * (live or 0), 12 * (uncommitted or 0))
        twelfth = total // 12
        return cls(
            live=_capped(4 * twelfth, live),
            uncommitted=_capped(twelfth, uncommitted),
            block_cache=twelfth,
            write_buffers=twelfth,
            buffered=twelfth,
        )


def _capped(share: int, cap: int | None) -> int:
    return share if cap is None else min(share, cap)


_log = logging.getLogger(__name__)

_ENVIRONMENT = "KSTREAMS_"
_NOT_SETTINGS = "KSTREAMS_TEST_"
_PLAIN = (str, int, float, bool, tuple, Path)
_SECRET_WORDS = ("password", "secret", "token", "jaas", "ssl.key", "credential", "auth.user.info")
_PASSWORD_IN_URL = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_DEFAULTS = {key.name: None if key.default is None else key.kind.read(key.default) for key in KEYS.values()}
_BY_KEYWORD = {name.replace(".", "_"): name for name in (*KEYS, *OLD_NAMES)}


class Config(Mapping[str, Any]):
    """The immutable settings of an application, by the names of Kafka Streams.

    `Config.of` reads explicit settings, and `Config.load` also the environment and `kstreams.toml`. As a mapping, a
    Config holds each known key with its value or default, and the settings that are passed on to clients.

    Examples
    --------
    >>> config = Config.of({"num.stream.threads": "2"}, application_id="flights")
    >>> config["application.id"], config["num.stream.threads"], config["commit.interval.ms"]
    ('flights', 2, 30000)
    >>> Config.of(num_stream_thread=2)
    Traceback (most recent call last):
    kstreams.errors.ConfigError: unknown configuration key num.stream.thread; the nearest is num.stream.threads
    """

    __slots__ = ("_explicit", "_values")

    def __init__(self, explicit: Mapping[str, Any]) -> None:
        self._explicit = dict(explicit)
        self._values = dict(_DEFAULTS)
        if explicit.get("processing.guarantee") == "exactly_once_v2":
            self._values["commit.interval.ms"] = 100
        self._values.update(explicit)

    @classmethod
    def of(cls, mapping: Mapping[str, Any] | None = None, **keywords: Any) -> Config:
        """Return a Config of explicit settings and defaults, without the environment and files.

        Parameters
        ----------
        mapping : mapping, optional
            Keys with dots, or another Config.
        **keywords
            Keys with underscores, such as `application_id="flights"`. They take precedence over `mapping`.

        Raises
        ------
        ConfigError
            If a key is unknown or a value does not fit. The message names the key and the most similar known key.
        """
        if mapping is None and not keywords:
            return cls({})
        explicit = dict(mapping._explicit) if isinstance(mapping, Config) else _checked(mapping or {}, "")
        return cls({**explicit, **_checked({_from_keyword(k): v for k, v in keywords.items()}, "")})

    @classmethod
    def load(
        cls,
        mapping: Mapping[str, object] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        file: str | Path = "kstreams.toml",
        **keywords: object,
    ) -> Config:
        """Return a Config of explicit settings, then the environment, then the file, then the defaults.

        Parameters
        ----------
        mapping, **keywords
            As in `Config.of`.
        environment : mapping, optional
            Default: the environment of the process. `KSTREAMS_APPLICATION_ID` sets `application.id`.
        file : path
            A TOML file of settings, which may be missing.

        Raises
        ------
        ConfigError
            As in `Config.of`, and if the file is not TOML.
        """
        variables = os.environ if environment is None else environment
        explicit = cls.of(mapping, **keywords)._explicit
        return cls({**_from_file(Path(file)), **_from_environment(variables), **explicit})

    def over(self, defaults: Mapping[str, object]) -> Config:
        """Return these settings, with `defaults` for keys that are not set."""
        return Config({**_checked(defaults, ""), **self._explicit})

    def replace(self, mapping: Mapping[str, Any] | None = None, **keywords: object) -> Config:
        """Return a copy in which these settings take precedence."""
        return Config({**self._explicit, **Config.of(mapping, **keywords)._explicit})

    @property
    def application_id(self) -> str:
        """The id of the application. Raises ConfigError if it is not set."""
        application_id: str | None = self._values["application.id"]
        if application_id is None:
            raise ConfigError("application.id is not set: give it in the configuration, or as KSTREAMS_APPLICATION_ID")
        return application_id

    @property
    def caches(self) -> bool:
        """True if the record cache is on: `statestore.cache.max.bytes` is above 0."""
        return bool(self["statestore.cache.max.bytes"] > 0)

    @property
    def explicit(self) -> dict[str, object]:
        """The settings without the defaults."""
        return dict(self._explicit)

    def prefixed(self, prefix: str) -> dict[str, object]:
        """Return the settings whose keys start with `prefix`, and remove the prefix.

        Examples
        --------
        >>> Config.of({"producer.linger.ms": 5}).prefixed("producer.")
        {'linger.ms': 5}
        """
        return {k.removeprefix(prefix): v for k, v in self._explicit.items() if k.startswith(prefix)}

    def plain(self) -> Config:
        """Return the settings without functions and objects, which can be sent to another process.

        Examples
        --------
        >>> Config.of({"application.id": "a", "processing.exception.handler": print}).plain().explicit
        {'application.id': 'a'}
        """
        return Config({name: value for name, value in self._explicit.items() if isinstance(value, _PLAIN)})

    def warn_of_unused(self) -> None:
        """Log the settings that have no effect in kstreams."""
        for name in self._explicit:
            if name in KEYS and not KEYS[name].used:
                _log.warning("%s: %s", name, KEYS[name].doc)

    def __getitem__(self, key: str) -> Any:
        try:
            return self._values[OLD_NAMES.get(key, key)]
        except KeyError:
            if key.startswith(PREFIXES):
                raise
            raise _unknown(key, "") from None

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if it has neither a value nor a default of its own."""
        value = self._values.get(OLD_NAMES.get(key, key))
        return default if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._explicit))  # values need not be hashable: a setting may be a list

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._explicit == other._explicit

    def __repr__(self) -> str:
        settings = {key: "****" if is_secret(key) else value for key, value in self._explicit.items()}
        return f"Config({without_passwords(str(settings))})"


def is_secret(key: str) -> bool:
    """Return whether the value of a key is secret.

    Examples
    --------
    >>> is_secret("producer.sasl.password"), is_secret("producer.linger.ms")
    (True, False)
    """
    return any(word in key.lower() for word in _SECRET_WORDS)


def without_passwords(text: str) -> str:
    """Return a text without the users and passwords of URLs.

    Examples
    --------
    >>> without_passwords("http://me:tiger@localhost:8081")
    'http://****@localhost:8081'
    """
    return _PASSWORD_IN_URL.sub("****", text)


def masked(text: str, settings: Mapping[str, object]) -> str:
    """Return a text without the secrets of these settings, also in the quotes of Python and JSON. Paths are no secrets.

    Examples
    --------
    >>> masked("cannot log in with tiger", {"sasl.password": "tiger"})
    'cannot log in with ****'
    """
    secrets = {
        name: str(value)
        for name, value in settings.items()
        if value is not None and not isinstance(value, Path) and is_secret(name)
    }
    passwords = (text.partition(":")[2] for name, text in secrets.items() if name.endswith("auth.user.info"))
    forms = {form for secret in filter(None, (*secrets.values(), *passwords)) for form in _quoted(secret)}
    for form in sorted(forms, key=len, reverse=True):  # one secret may be the beginning of another
        text = text.replace(form, "****")
    return without_passwords(text) if "://" in text else text


def _quoted(secret: str) -> tuple[str, ...]:
    """Return the forms of a secret in texts: plain, in a `repr`, and in JSON."""
    return secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]


def _checked(settings: Mapping[str, object], place: str) -> dict[str, object]:
    """Return the settings with checked and typed values. `place` names their origin in errors."""
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise ConfigError(
            f'settings{place} are a mapping of keys to values, as {{"application.id": "app"}}, not {settings!r}'
        )
    return dict(_read(name, value, place) for name, value in settings.items() if value is not None)


def _read(name: str, value: object, place: str) -> tuple[str, object]:
    name = OLD_NAMES.get(name, name)
    if name.startswith(PREFIXES):
        return name, value
    if name in REFUSED:
        raise ConfigError(f"{name} cannot be used{place}: {REFUSED[name]}")
    key = KEYS.get(name)
    if key is None:
        raise _unknown(name, place)
    try:
        return name, key.kind.read(value)
    except ValueError as error:
        text = "****" if is_secret(name) else repr(value)
        raise ConfigError(f"{name} cannot be {text}{place}: {error}") from None


def _unknown(name: str, place: str) -> ConfigError:
    nearest = nearest_name(name, [*KEYS, *OLD_NAMES], cutoff=0.5)
    hint = f"the nearest is {nearest}" if nearest else "`Config` in the docs lists all of them"
    return ConfigError(f"unknown configuration key {name}{place}; {hint}")


def _from_keyword(keyword: str) -> str:
    """Return the key of a keyword, such as `application.id` for `application_id`."""
    return _BY_KEYWORD.get(keyword) or keyword.replace("_", ".")


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for variable, value in environment.items():
        if variable.startswith(_ENVIRONMENT) and not variable.startswith(_NOT_SETTINGS):
            name = _from_keyword(variable.removeprefix(_ENVIRONMENT).lower())
            values.update(_checked({name: value}, f" (environment variable {variable})"))
    return values


def _from_file(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        tables = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return _checked(dict(flat_keys(tables)), f" (in {path})")


def flat_keys(tables: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield keys with dots from nested tables: TOML parses `num.stream.threads = 2` as tables.

    Examples
    --------
    >>> dict(flat_keys({"num": {"stream": {"threads": 2}}}))
    {'num.stream.threads': 2}
    """
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from flat_keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
