"""`kstreams ps`, `status`, `stores`, `lag`: show the instances of running applications."""

from __future__ import annotations

from kstreams.cli.commands.query import ApplicationId, AsJsonOrTable, StateDir
from kstreams.cli.output import print_rows
from kstreams.cli.running import RunningApplication, require_running, settings_of_application


def ps(state_dir: StateDir = None, as_json: AsJsonOrTable = False) -> None:
    """List the instances of all applications in a state directory that answer queries.

    Example: `kstreams ps --state-dir .kstreams/state`
    """
    from pathlib import Path

    from kstreams.server.instances import running_instances

    config = settings_of_application(None, None, state_dir)
    columns = ("application_id", "address", "pid")
    instances_below = running_instances(Path(config["state.dir"]))
    print_rows(({name: getattr(instance, name) for name in columns} for instance in instances_below), as_json=as_json)


def status(application_id: ApplicationId = None, state_dir: StateDir = None, as_json: AsJsonOrTable = False) -> None:
    """Show the state of each instance of an application, and its counters since the start.

    Example: `kstreams status --json`
    """
    answers = _application(application_id, state_dir).ask_all("/v1/status")
    print_rows(answers, as_json=as_json)


def stores(application_id: ApplicationId = None, state_dir: StateDir = None, as_json: AsJsonOrTable = False) -> None:
    """List the stores of a running application that can be queried.

    Example: `kstreams stores --application-id visits`
    """
    print_rows(_application(application_id, state_dir).ask("/v1/stores")["stores"], as_json=as_json)


def lag(application_id: ApplicationId = None, state_dir: StateDir = None, as_json: AsJsonOrTable = False) -> None:
    """Show the lag of the stores of each instance behind their changelogs.

    Example: `kstreams lag --json`
    """
    answers = _application(application_id, state_dir).ask_all("/v1/lag")
    rows = ({"instance": answer["instance"], **store} for answer in answers for store in answer["stores"])
    print_rows(rows, as_json=as_json)


def _application(application_id: str | None, state_dir: StateDir) -> RunningApplication:
    return require_running(settings_of_application(application_id, None, state_dir))
