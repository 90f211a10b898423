"""Prometheus metrics: what the engine's snapshot says, and what the server measures itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from engine.messages import EngineSnapshot, Finished

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
RATES = (1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 300)
STATES = ("empty", "planning", "loading", "ready", "draining", "closed", "failed")
METHODS = ("GET", "POST", "DELETE", "OPTIONS", "HEAD")
LANE_STATES = ("idle", "prefill", "decode", "parked")


class EngineCollector(Collector):
    """Turns the newest snapshot into metrics at the time of a scrape."""

    def __init__(self, snapshot: Callable[[], EngineSnapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        now = self._snapshot()
        state = GaugeMetricFamily("ignis_engine_state", "1 for the state the engine is in.", labels=["state"])
        for name in STATES:
            state.add_metric([name], float(now.state == name))
        yield state
        lanes = GaugeMetricFamily("ignis_lanes", "Lanes by what they do.", labels=["state"])
        for name in LANE_STATES:
            lanes.add_metric([name], sum(lane.state == name for lane in now.lanes))
        yield lanes
        queue = GaugeMetricFamily("ignis_queued_requests", "Requests that wait for a lane.", labels=["class"])
        queue.add_metric(["interactive"], now.queued_interactive)
        queue.add_metric(["agent"], now.queued_agent)
        yield queue
        pages = GaugeMetricFamily("ignis_kv_pages", "Pages of the KV pool.", labels=["state"])
        pages.add_metric(["free"], now.pages_free)
        pages.add_metric(["used"], now.pages_total - now.pages_free)
        yield pages
        yield from _reuse_metrics(now)
        memory = GaugeMetricFamily("ignis_memory_plan_bytes", "The memory plan, line by line.", labels=["line"])
        for line in now.memory_plan.lines if now.memory_plan else ():
            memory.add_metric([line.name], line.bytes)
        yield memory
        for name, text, value in (
            ("ignis_parked_requests", "Requests that gave up their lane and go on later.", len(now.parked)),
            ("ignis_retained_prefixes", "Prefixes kept for later questions.", now.retained),
            ("ignis_decode_tokens_per_second", "Tokens generated a second, all lanes.", now.decode_tokens_per_second),
            ("ignis_prefill_tokens_per_second", "Prompt tokens read a second.", now.prefill_tokens_per_second),
            ("ignis_context_tokens", "Tokens one lane may hold.", now.context_length),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        for name, text, value in (
            ("ignis_rounds", "Rounds run.", now.rounds),
            ("ignis_generated_tokens", "Tokens generated.", now.tokens_generated),
            ("ignis_prefilled_tokens", "Prompt tokens read.", now.tokens_prefilled),
        ):
            yield CounterMetricFamily(name, text, value=value)
        requests = CounterMetricFamily("ignis_requests", "Requests that ended, by how.", labels=["result"])
        requests.add_metric(["finished"], now.requests_finished)
        requests.add_metric(["failed"], now.requests_failed)
        requests.add_metric(["cancelled"], now.requests_cancelled)
        yield requests


def _reuse_metrics(now: EngineSnapshot) -> Iterator[Metric]:
    """What is kept of earlier requests, where it lies, and what that has saved."""
    reuse = now.reuse
    yield GaugeMetricFamily("ignis_kept_states", "States of earlier requests that can be continued.", value=reuse.kept)
    yield GaugeMetricFamily("ignis_kept_pages", "Pages that only kept states hold.", value=reuse.kept_pages)
    tier = GaugeMetricFamily("ignis_host_tier_bytes", "Host memory for kept and parked states.", labels=["state"])
    tier.add_metric(["used"], reuse.host_used)
    tier.add_metric(["free"], reuse.host_total - reuse.host_used)
    yield tier
    yield GaugeMetricFamily("ignis_disk_tier_bytes", "Disk space that kept states take.", value=reuse.disk_used)
    lookups = CounterMetricFamily("ignis_reuse_lookups", "Requests by whether a kept state fitted.", labels=["result"])
    lookups.add_metric(["hit"], reuse.hits)
    lookups.add_metric(["miss"], reuse.misses)
    yield lookups
    for name, text, value in (
        ("ignis_cached_prompt_tokens", "Prompt tokens that were not read again.", reuse.cached_tokens),
        ("ignis_evictions", "Kept states dropped to make room.", reuse.evictions),
        ("ignis_spills", "States moved to the host tier.", reuse.spills),
        ("ignis_restores", "States moved back from the host tier.", reuse.restores),
        ("ignis_parks", "Requests that gave up their lane.", reuse.parks),
        ("ignis_resumes", "Parked requests that went on.", reuse.resumes),
    ):
        yield CounterMetricFamily(name, text, value=value)


class ServerMetrics:
    """A registry of its own: several servers in one process do not meet."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, snapshot: Callable[[], EngineSnapshot]) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(EngineCollector(snapshot))
        ProcessCollector(registry=self.registry)
        self._http = Counter(
            "ignis_http_requests", "HTTP requests.", ["method", "route", "status"], registry=self.registry
        )
        self._http_seconds = Histogram(
            "ignis_http_request_seconds",
            "Duration of HTTP requests.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._queue = Histogram(
            "ignis_queue_seconds",
            "Time a request waited for a lane.",
            ["class"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._prefill = Histogram(
            "ignis_prefill_seconds", "Time a request's prompt took.", ["class"], buckets=SECONDS, registry=self.registry
        )
        self._rate = Histogram(
            "ignis_request_tokens_per_second",
            "Decoding rate of one request.",
            ["class"],
            buckets=RATES,
            registry=self.registry,
        )
        self._answer = Histogram(
            "ignis_answer_seconds",
            "Duration of one zero-token answer.",
            ["type", "found"],
            buckets=SECONDS,
            registry=self.registry,
        )

    def observe_http(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"  # clients may send any word; labels must stay few
        self._http.labels(method, route, str(status)).inc()
        self._http_seconds.labels(route).observe(seconds)

    def observe_generation(self, request_class: str, finished: Finished) -> None:
        self._queue.labels(request_class).observe(finished.queue_seconds)
        self._prefill.labels(request_class).observe(finished.prefill_seconds)
        if finished.decode_seconds > 0:
            self._rate.labels(request_class).observe(finished.usage.output_tokens / finished.decode_seconds)

    def observe_answer(self, kind: str, found: bool, seconds: float) -> None:
        self._answer.labels(kind, str(found).lower()).observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)
