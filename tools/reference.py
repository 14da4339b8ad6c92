"""Writes the pages of docs/reference/ that follow from the code: operators, configuration, command line.

python tools/reference.py            # write them
python tools/reference.py --check    # fail when one of them is not what it would write
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, get_args

from typer.models import ArgumentInfo, OptionInfo

from kstreams.metrics.template import MetricTemplate

DOCS = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by tools/reference.py (`make docs`) from the code: change it there. -->\n"

Page = Iterator[str]


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        return check()
    for name, page in PAGES.items():
        (DOCS / name).write_text(text_of(page))
    return 0


def check() -> int:
    """Print how the pages differ from what they should be."""
    different = 0
    for name, page in PAGES.items():
        now = (DOCS / name).read_text() if (DOCS / name).exists() else ""
        wanted = text_of(page)
        sys.stdout.writelines(difflib.unified_diff(now.splitlines(True), wanted.splitlines(True), name, "make docs"))
        different += now != wanted
    return min(different, 1)


def text_of(page: Callable[[], Page]) -> str:
    return NOTE + "\n".join(page()) + "\n"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Page:
    names = list(headings)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"


def first_sentence(documented: Any) -> str:
    return (inspect.getdoc(documented) or "").split("\n\n")[0].replace("\n", " ")


# --- operators ------------------------------------------------------------------------------------------------------


def operators() -> Page:
    yield OPERATORS_INTRODUCTION
    for handle in handles():
        yield f"\n## {handle.__name__}\n"
        yield from table(
            ("Method", "Does"), ((f"`{name}`", first_sentence(method)) for name, method in methods(handle))
        )
    yield "\n## On which engine\n"
    yield ENGINES_INTRODUCTION
    yield from table(("Node", "What it stands for", "Native", "Spark, relational path", "Spark, tasks"), support())


def handles() -> tuple[type, ...]:
    """What users hold, in the order in which they come to hold it."""
    import kstreams as ks
    from kstreams.dsl.streams.branched import BranchedKStream

    streams = (ks.StreamsBuilder, ks.KStream, BranchedKStream, ks.KGroupedStream)
    windowed = (ks.TimeWindowedKStream, ks.SessionWindowedKStream, ks.CogroupedKStream)
    return (*streams, *windowed, ks.KTable, ks.KGroupedTable)


def methods(handle: type) -> Iterator[tuple[str, Any]]:
    for name, method in inspect.getmembers(handle, inspect.isfunction):
        if not name.startswith("_"):
            yield name, method


def support() -> Iterator[tuple[str, ...]]:
    """What the descriptors of our operators say of both engines, one row each."""
    from kstreams.dsl.operator import operators
    from kstreams.runtime.spark.code import forms  # noqa: F401 (registers how they run on Spark)

    for node in operators.node_types:
        if node.__module__.startswith("kstreams."):
            descriptor = operators.of_type(node)
            form = descriptor.spark
            native = "columns, records" if has_columns(descriptor) else "records"
            differences = "; ".join(f"`{each.name}`: {each.description}" for each in form.differences)
            relational = differences or "yes" if form.write is not None else f"no: {form.reason}"
            tasks = "exact" if form.task_difference is None else f"exact, but: {form.task_difference}"
            yield f"`{node.__name__}`", first_sentence(node), native, relational, tasks


def has_columns(descriptor: Any) -> bool:
    """Whether an operator has a columnar form; columns begin at sources of streams and end at topics."""
    from kstreams.dsl import graph

    named = (names for names in descriptor.topology.__code__.co_consts if isinstance(names, tuple))
    begins_or_ends = descriptor.node in (graph.StreamSource, graph.Repartition, graph.To)
    return begins_or_ends or any("columns" in names for names in named)


OPERATORS_INTRODUCTION = """# Operators

The methods of the DSL. The docstring of each has a longer description and an example that runs:
`python -c "import kstreams as ks; help(ks.KStream.join)"`.
"""

ENGINES_INTRODUCTION = """A method adds a node to the logical graph. The native engine runs every node on records,
and on *columns* if it has a columnar form and its functions are expressions. The results are the same. On Spark, a
sub-topology takes the relational path where you accept its differences (`spark.kstreams.accept`) or ask for it
(`spark.kstreams.path=relational`), if all its nodes have a form in PySpark that your expressions and types allow:
*yes*, or the names and descriptions of its differences. All others run as tasks of the native engine.
`kstreams explain app.py --engine spark` shows the paths of your application.
"""


# --- configuration --------------------------------------------------------------------------------------------------


def configuration() -> Page:
    from kstreams.config import KEYS, PREFIXES
    from kstreams.log.embedded.segments.topic_settings import TOPIC_SETTINGS

    yield CONFIGURATION_INTRODUCTION
    used = [key for key in KEYS.values() if key.used]
    yield from table(("Key", "Value", "Default", "Meaning"), map(row_of, used))
    yield "\n## Keys that are passed on\n"
    yield ("Keys that start with " + ", ".join(f"`{prefix}`" for prefix in PREFIXES) + " are passed on unchanged.")
    yield "\n## Keys of Kafka Streams without effect\n"
    yield "These keys are accepted, so that existing configurations run. A warning names them.\n"
    yield from table(("Key", "Why"), ((f"`{k.name}`", k.doc) for k in KEYS.values() if not k.used))
    yield "\n## Settings of topics\n"
    yield "For `kstreams topics create --config KEY=VALUE` and `Admin.create_topic`. The names are those of Kafka.\n"
    yield from table(("Key", "Value", "Default", "Meaning"), map(row_of, TOPIC_SETTINGS.values()))


def row_of(key: Any) -> tuple[str, str, str, str]:
    return f"`{key.name}`{' (own)' if key.own else ''}", key.kind.name, shown(key.default), key.doc


def shown(default: Any) -> str:
    return "" if default in (None, "") else f"`{default}`"


CONFIGURATION_INTRODUCTION = """# Configuration

The keys are those of Kafka Streams. A setting may be given in four places; the first takes precedence:

1. the command line: `kstreams run app.py -c num.stream.threads=2`;
2. the application: `config = {"num.stream.threads": 2}` in `app.py`, or as a keyword: `num_stream_threads=2`;
3. the environment: `KSTREAMS_NUM_STREAM_THREADS=2`;
4. the file `kstreams.toml` in the current folder: `num.stream.threads = 2`.

An unknown key or a bad value is an error that names the key and the nearest known one. *own* marks keys that Kafka
Streams does not have.
"""


# --- command line ---------------------------------------------------------------------------------------------------


def command_line() -> Page:
    from kstreams.cli.commands.application import COMMANDS, command_named

    yield COMMAND_LINE_INTRODUCTION
    functions = {}
    for name in COMMANDS:
        command = command_named(name)
        members = getattr(command, "commands", {"": command})
        functions |= {f"{name} {member}".strip(): function_of(each) for member, each in members.items()}
    for name, function in sorted(functions.items()):
        yield from one_command(f"kstreams {name}", function)


def function_of(command: Any) -> Callable[..., None]:
    return inspect.unwrap(command.callback)


def one_command(name: str, function: Callable[..., None]) -> Page:
    parameters = [described(parameter) for parameter in inspect.signature(function, eval_str=True).parameters.values()]
    arguments = [parameter for parameter in parameters if isinstance(parameter.info, ArgumentInfo)]
    options = [parameter for parameter in parameters if isinstance(parameter.info, OptionInfo)]
    yield f"\n## `{' '.join([name, *(str(argument.info.metavar) for argument in arguments)])}`\n"
    yield inspect.cleandoc(function.__doc__ or "") + "\n"
    rows = [(f"`{argument.info.metavar}`", "", argument.info.help or "") for argument in arguments]
    rows += [(spelling(option), shown_default(option), option.info.help or "") for option in options]
    yield from table(("Option", "Default", "Meaning"), rows)


class Described(NamedTuple):
    """A parameter of a command: its name, the type of its value, its default, and what Typer is told about it."""

    name: str
    kind: Any
    default: Any
    info: Any


def described(parameter: inspect.Parameter) -> Described:
    kind, info = get_args(parameter.annotation)
    return Described(parameter.name, kind, parameter.default, info)


def spelling(option: Described) -> str:
    given = (option.info.default, *(option.info.param_decls or ()))  # Typer's first argument is called default
    flags = [flag for flag in given if isinstance(flag, str)] or [f"--{option.name.replace('_', '-')}"]
    value = "" if option.kind is bool else f" {option.info.metavar or values_of(option.kind)}"
    return ", ".join(f"`{flag}{value}`" for flag in flags)


def values_of(kind: Any) -> str:
    """`native|spark` for an enumeration, else the name of the type."""
    plain = next((member for member in get_args(kind) if member is not type(None)), kind)
    return "|".join(plain) if issubclass(plain, Enum) else plain.__name__.upper()


def shown_default(option: Described) -> str:
    return "" if option.kind is bool or option.default in (None, inspect.Parameter.empty) else f"`{option.default}`"


COMMAND_LINE_INTRODUCTION = """# Command line

`kstreams COMMAND --help` prints the text of this page. With `--json`, commands print one JSON object per line. In a
pipe, tables are tab-separated text. `NO_COLOR` is respected. `kstreams --install-completion` installs shell completion.
`--debug`, anywhere on the line, shows stack traces and all log lines.

| Exit status | Means |
|---|---|
| 0 | Success; also `run` after SIGTERM, and `consume` after the reader of its output has ended. |
| 1 | The command failed; one sentence on standard error says why. `check`, `doctor`, `log verify` found a problem. |
| 2 | The arguments are wrong. |
| 130 | The command was interrupted (Ctrl-C); `run` has committed what it had processed. |
| 143 | The command was terminated (SIGTERM); not `run`, whose status is 0. |"""


# --- metrics ---------------------------------------------------------------------------------------------------------


def metrics() -> Page:
    from kstreams.metrics.catalogue import TEMPLATES

    yield METRICS_INTRODUCTION
    yield from table(("Group", "Name", "Kind", "Labels", "Level", "Meaning"), map(metric_row, TEMPLATES.values()))


def metric_row(metric: MetricTemplate) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    meaning = metric.description + " *" * metric.ours
    return f"`{metric.group}`", f"`{metric.name}`", metric.kind.value, labels, metric.level.value, meaning


METRICS_INTRODUCTION = """# Metrics

`KafkaStreams.metrics()` returns the values of all metrics of this process now, by group, name and tags, as Kafka
Streams names them. Those marked * have no counterpart there. Sensors of processors are among them: group
`stream-processor-node-metrics`, names `<sensor>-total`, `-count` and `-max`.

Rates, averages and extremes go over the last `metrics.num.samples` windows of `metrics.sample.window.ms`, and are left
out while there is nothing to average; counters begin at the start of the process. Metrics of the level DEBUG need
`metrics.recording.level=DEBUG`. A call asks the home of topics where partitions end; stream threads do not wait for it.

Metrics of Kafka Streams that are not there, and why:

| Metric | Why |
|---|---|
| `num-open-iterators`, `iterator-duration-*`, `oldest-iterator-open-since-ms` | an open iterator holds nothing * |
| `topology-description` | it would be a label of some kilobytes in every scrape; `kstreams topology` prints it |
| `commit-id`, `client-state` | a package knows its version; `state` is the text |
| `emit-final-latency-*` | closing windows is a part of processing a run; `active-ratio` tells what an operator takes |
| `idempotent-update-skip-*` | no update is skipped because it changes nothing |
| `active-paused-tasks`, `standby-paused-tasks` | a pause stops no restore |
| `checkpoint-ratio` | offsets lie with the data: there are no checkpoints |
| `commit-latency-*` of a task | all tasks of a thread commit together: see that of threads |

\* Between two parts that it reads, an iterator over a store holds nothing in RocksDB.

Topics that sinks write to are counted for each thread, without task and node: it writes what its tasks give as one.

With [`kstreams run --serve`](../how-to/operations.md), Prometheus reads them at `/metrics`. In a program of yours, it
reads them from a registry, with the extra `metrics` (`pip install 'kstreams-dsl[metrics]'`):

```python
import kstreams as ks
from kstreams.metrics.prometheus import PrometheusCollector
from prometheus_client import CollectorRegistry, generate_latest

builder = ks.StreamsBuilder()
builder.stream("orders", key=str, value=str).to("copies")

streams = ks.KafkaStreams(builder, {"application.id": "shop"})
registry = CollectorRegistry()
registry.register(PrometheusCollector(streams))
print(generate_latest(registry).decode().splitlines()[8])
```

```text
kafka_streams_stream_metrics_state_info{client_id="shop",state="CREATED"} 1.0
```

Several applications in one process go into one collector, `PrometheusCollector(first, second)`; the label `client_id`,
their `client.id`, tells them apart. A sensor of a processor is `..._stream_processor_node_metrics_sensor_total` there
(`_count`, `_max`), with its name in the label `sensor`.

`process-total` of `stream-thread-metrics` is `kafka_streams_stream_thread_metrics_process_total` there, as JMX
exporters name it; tags are labels. `prometheus_client.start_http_server(9404, addr="127.0.0.1", registry=registry)`
serves them.

An application on Spark has metrics of the same names: `ks.spark.start(...)` returns a handle with `metrics()`, and
collector and `observe` take it as they take a `KafkaStreams`. A step counts as a run of records of one thread, the
driver's: `process-*` are whole steps, `commit-*` the commits in them. There are further the records dropped and
written, stream time of tasks, rows and bytes of stores, and lag. The group `spark-query-metrics` has what Spark's
`StreamingQueryProgress` says of the last batch of each query, and the same of the last step of tasks: rates, durations
of phases, and the state that Spark keeps. `query` is the name in Spark's UI.

OpenTelemetry has an instrument for each metric by `kstreams.metrics.opentelemetry.observe(streams, meter)`, once for
each application; which exporter takes them from there is yours to choose.
"""


PAGES: dict[str, Callable[[], Page]] = {
    "operators.md": operators,
    "configuration.md": configuration,
    "cli.md": command_line,
    "metrics.md": metrics,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
