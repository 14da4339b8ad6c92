"""What an error of PostgreSQL means: whether it may pass, and what to do about one that does not."""

from __future__ import annotations

import re

_PASSING_STATES = ("08", "40", "53", "57", "55006", "55P03", "58030")
"""SQLSTATEs, or classes of them, of errors that may pass: of the connection, a transaction that was rolled back, absent
resources, an operator, an object that is in use, a lock that is not available, and the disk."""

_REMEDIES = {
    "28": "Check the user, the password and the rights of the role, and pg_hba.conf of the server",
    "3D": "Create the database, or correct its name",
    "3F": "Create the schema, or correct its name",
    "42501": "Grant the right to the user, or take another one",
    "42P01": "Create the table, or correct its name",
    "42703": "Correct the name of the column",
}
"""What to do, by SQLSTATE or class of it."""

_OTHER_REMEDY = "Correct the declaration, or the database"

_FAILED_LOGINS = {
    "28000": re.compile(
        r"password authentication failed|no password supplied|no pg_hba.conf entry|SSL was required|"
        r"certificate verify failed|must be superuser or replication role|"
        r"role \"[^\"]*\" (does not exist|is not permitted to log in)"
    ),
    "3D000": re.compile(r"database \"[^\"]*\" does not exist"),
    "42501": re.compile(r"permission denied for database"),
}
"""The texts of failed logins, for which libpq has no SQLSTATE."""


def may_pass(error: BaseException) -> bool:
    """Return whether an error of a driver may pass, so that trying again helps.

    Examples
    --------
    >>> may_pass(ConnectionResetError()), may_pass(Exception('FATAL: database "shop" does not exist'))
    (False, False)
    """
    state = _sqlstate(error)
    if state:
        return state.startswith(_PASSING_STATES)
    return not {"OperationalError", "InterfaceError"}.isdisjoint(cls.__name__ for cls in type(error).__mro__)


def remedy(error: BaseException) -> str:
    """Return what to do about an error that does not pass.

    Examples
    --------
    >>> remedy(Exception('FATAL: database "shop" does not exist'))
    'Create the database, or correct its name'
    """
    state = _sqlstate(error)
    return next((text for prefix, text in _REMEDIES.items() if state.startswith(prefix)), _OTHER_REMEDY)


def _sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of an error, or the one that its text stands for. Empty if there is none."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if state:
        return str(state)
    return next((state for state, text in _FAILED_LOGINS.items() if text.search(str(error))), "")
