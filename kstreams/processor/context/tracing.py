"""`Tracing`: OpenTelemetry spans of the operators that a record passes, below the trace in the record's headers.

The headers of W3C's trace context connect the spans of a trace. An operator reads its parent span from the headers of
the record, and writes its own span into the headers for its children and for written records. So a trace continues
through repartition topics, caches, buffers and async calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kstreams.errors import ConfigError
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, TopologyNode
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

_PARENT = "traceparent"
_STATE = "tracestate"
_SAMPLED = 0x01


class Tracing:
    """The spans of one task, created by the tracer provider of the process.

    Parameters
    ----------
    current : CurrentRecord
    application_id, task_id : str
    begins : bool
        True if a record without a trace begins one, if the sampler of the provider samples it.

    Raises
    ------
    ConfigError
        If OpenTelemetry is not installed.
    """

    def __init__(self, current: CurrentRecord, application_id: str, task_id: str, *, begins: bool) -> None:
        self._current = current
        self._begins = begins
        self._of_task = {"messaging.consumer.group.name": application_id, "kstreams.task.id": task_id}
        self._tracer = _tracer()

    def traced(self, node: TopologyNode, forward: Forward) -> Forward:
        """Return the closure of a node, with a span for each record that carries a trace."""
        start = self._start_of(node)
        current = self._current
        begins = self._begins and isinstance(node, SourceNode)

        def trace(key: object, value: object, timestamp: int) -> None:
            before = current.headers
            above = _context_of(before)
            if not (begins if above is None else _is_sampled(above)):
                forward(key, value, timestamp)
                return
            with start(above) as span:
                current.headers = _headers_below(before, span)
                try:
                    forward(key, value, timestamp)
                finally:
                    current.headers = before

        return trace

    def _start_of(self, node: TopologyNode) -> Callable[[Context | None], Any]:
        from opentelemetry.trace import SpanKind

        tracer = self._tracer
        current = self._current
        common = {**self._of_task, "kstreams.operator": node.name}
        if isinstance(node, ProcessorNode):
            return lambda above: tracer.start_as_current_span(node.name, above, attributes=common)
        if isinstance(node, SinkNode):
            topic = node.topic if isinstance(node.topic, str) else node.name
            of_sink = {**common, "messaging.operation.type": "send", "messaging.destination.name": topic}
            return lambda above: tracer.start_as_current_span(
                f"send {topic}", above, SpanKind.PRODUCER, attributes=of_sink
            )
        of_source = {**common, "messaging.operation.type": "process"}

        def start(above: Context | None) -> Any:
            read: dict[str, str | int] = {
                "messaging.destination.name": current.topic or "",
                "messaging.kafka.offset": current.offset,
            }
            name = f"process {current.topic}"
            return tracer.start_as_current_span(name, above, SpanKind.CONSUMER, attributes={**of_source, **read})

        return start


def _tracer() -> Tracer:
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise ConfigError(
            "trace.records needs OpenTelemetry, which is not installed: pip install 'kstreams-dsl[metrics]'"
        ) from error
    return trace.get_tracer("kstreams")


def _context_of(headers: Headers) -> Context | None:
    """Return the trace in headers. A trace that cannot be read is None, as W3C specifies."""
    if not headers:
        return None
    carried = _carried(headers)
    if _PARENT not in carried:
        return None
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract(carried)
    return context if get_current_span(context).get_span_context().is_valid else None


def _is_sampled(context: Context) -> bool:
    from opentelemetry.trace import get_current_span

    return bool(get_current_span(context).get_span_context().trace_flags & _SAMPLED)


def _carried(headers: Headers) -> dict[str, str]:
    return {name: value.decode("ascii", "replace") for name, value in headers if name in (_PARENT, _STATE) and value}


def _headers_below(headers: Headers, span: Span) -> Headers:
    """Return the headers for the results of a record, with the span as their parent."""
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not span.get_span_context().is_valid:
        return headers
    written: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(written, set_span_in_context(span))
    other_headers: Iterable[tuple[str, bytes | None]] = (
        header for header in headers if header[0] not in (_PARENT, _STATE)
    )
    return (*other_headers, *((name, value.encode()) for name, value in written.items()))
