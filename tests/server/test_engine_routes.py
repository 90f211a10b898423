"""What monitors and scripts read."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict

import httpx
import pytest
from prometheus_client import generate_latest
from prometheus_client.core import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from engine import Engine
from engine.messages import PAGE_FREE, EngineSnapshot
from ignis_desktop.server.metrics import EngineCollector
from ignis_desktop.server.snapshot_json import snapshot_bytes
from tests.busy import busy

Wait = Callable[[Callable[[], bool], float], float]


def test_engine_shape(http: httpx.Client, engine: Engine) -> None:
    body = http.get("/v1/engine").json()
    assert body["state"] == "ready"
    assert body["model"] == engine.snapshot().model
    assert body["device"]
    assert [lane["lane"] for lane in body["lanes"]] == list(range(len(body["lanes"])))
    for lane in body["lanes"]:
        assert {"lane", "state", "class", "client", "tokens_per_second", "context"} <= set(lane)
        assert lane["state"] in ("idle", "prefill", "decode", "parked")
    assert {"interactive", "agent"} <= set(body["queue"])
    plan = body["memory_plan"]
    assert plan["budget"] > 0
    assert all({"name", "bytes", "why", "tier"} <= set(line) for line in plan["lines"])
    assert plan["capacity"] == plan["budget"] + plan["headroom"] + plan["other"]
    assert sum(line["bytes"] for line in plan["lines"]) == plan["total"]
    assert {"decode_tokens_per_second", "prefill_tokens_per_second"} <= set(body["rates"])


def test_a_busy_engine_is_told_whole() -> None:
    now = busy()
    body = json.loads(snapshot_bytes(now))
    assert [lane["cached"] for lane in body["lanes"]] == [lane.cached for lane in now.lanes]
    assert [lane["pages"] for lane in body["lanes"]] == [lane.pages for lane in now.lanes]
    (parked,) = body["parked"]
    assert (parked["state"], parked["class"], parked["lane"]) == ("parked", "agent", 5)
    assert len(body["waiting"]) == body["queue"]["total"] == 7
    assert body["queue"] == {"interactive": 1, "agent": 6, "total": 7}
    first, second = body["waiting"][:2]
    assert (first["class"], first["protected"], second["class"], second["protected"]) == (
        "interactive",
        False,
        "agent",
        True,
    )
    assert {"request_id", "client", "label", "kind", "prompt_tokens", "seconds"} <= first.keys()
    assert body["reuse"] == asdict(now.reuse)
    pages = base64.b64decode(body["pages"]["map"])
    assert pages == now.page_map
    assert len(pages) == body["pages"]["total"] == 1024
    assert pages.count(PAGE_FREE) == body["pages"]["free"]
    assert "time" not in body


def test_an_engine_that_is_not_loaded_has_the_same_keys() -> None:
    empty = json.loads(snapshot_bytes(EngineSnapshot("empty")))
    assert empty.keys() == json.loads(snapshot_bytes(busy())).keys()
    assert empty["pages"] == {"total": 0, "free": 0, "map": ""}
    assert empty["memory_plan"] is None


@pytest.mark.parametrize("action", ["cancel", "park"])
def test_requests_that_nobody_knows(http: httpx.Client, action: str) -> None:
    answer = http.post(f"/v1/engine/requests/gone/{action}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "request_not_found")
    assert "'gone'" in answer.json()["error"]["message"]
    assert http.post(f"/v1/engine/requests//{action}").status_code == 404
    assert http.get(f"/v1/engine/requests/gone/{action}").status_code == 405


def test_a_request_is_cancelled_by_its_id(http: httpx.Client, engine: Engine, wait_until: Wait) -> None:
    cancelled = engine.snapshot().requests_cancelled
    body = {"prompt": "Once", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    with http.stream("POST", "/v1/completions", json=body) as stream:
        lines = stream.iter_lines()
        next(lines)
        wait_until(lambda: bool(running(http)), 10)
        (name,) = running(http)
        answer = http.post(f"/v1/engine/requests/{name}/cancel").json()
        assert answer == {"id": name, "object": "engine.request", "cancelled": True}
        rest = [line for line in lines if line]
    assert rest[-2] == "event: error"
    assert json.loads(rest[-1].removeprefix("data: "))["error"]["code"] == "cancelled"
    wait_until(lambda: not running(http), 5)
    assert engine.snapshot().requests_cancelled == cancelled + 1
    assert http.post(f"/v1/engine/requests/{name}/cancel").status_code == 404


ENDLESS = {"prompt": "Once", "max_tokens": 800, "ignore_eos": True, "temperature": 0}


def test_a_parked_agent_goes_on_where_it_stood(http: httpx.Client, wait_until: Wait) -> None:
    whole = http.post("/v1/completions", json=ENDLESS).json()["choices"][0]["text"]
    parks = http.get("/v1/engine").json()["reuse"]["parks"]
    with http.stream("POST", "/v1/completions", json={**ENDLESS, "stream": True, "class": "agent"}) as stream:
        lines = stream.iter_lines()
        next(lines)
        wait_until(lambda: bool(running(http)), 5)
        (name,) = running(http)
        answer = http.post(f"/v1/engine/requests/{name}/park").json()
        assert answer == {"id": name, "object": "engine.request", "parked": True}
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    reuse = http.get("/v1/engine").json()["reuse"]
    assert reuse["parks"] == parks + 1
    assert reuse["resumes"] >= 1
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert whole.endswith(text)
    assert len(text) > len(whole) / 2


def test_an_interactive_request_is_never_parked(http: httpx.Client, wait_until: Wait) -> None:
    with http.stream("POST", "/v1/completions", json={**ENDLESS, "stream": True}) as stream:
        lines = stream.iter_lines()  # kept: an iterator that is dropped closes the connection
        next(lines)
        wait_until(lambda: bool(running(http)), 5)
        (name,) = running(http)
        answer = http.post(f"/v1/engine/requests/{name}/park")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "not_an_agent")
    wait_until(lambda: not running(http), 5)


def running(http: httpx.Client) -> list[str]:
    return [lane["request_id"] for lane in http.get("/v1/engine").json()["lanes"] if lane["state"] != "idle"]


def test_health(http: httpx.Client, model: str) -> None:
    assert http.get("/health").json() == {"status": "ok", "state": "ready", "model": model}


def test_metrics_are_valid_and_count(http: httpx.Client) -> None:
    def value(name: str, **labels: str) -> float:
        families = text_string_to_metric_families(http.get("/metrics").text)
        samples = [s for family in families for s in family.samples if s.name == name]
        return sum(s.value for s in samples if labels.items() <= s.labels.items())

    before = value("ignis_generated_tokens_total"), value("ignis_http_requests_total", route="/v1/completions")
    http.post("/v1/completions", json={"prompt": "x", "max_tokens": 5, "ignore_eos": True}).raise_for_status()
    http.get("/v1/engine")
    assert value("ignis_http_requests_total", route="/v1/completions") == before[1] + 1
    assert value("ignis_generated_tokens_total") == before[0] + 5
    assert value("ignis_engine_state", state="ready") == 1
    assert value("ignis_lanes") == len(http.get("/v1/engine").json()["lanes"])
    assert value("ignis_memory_plan_bytes") > 0
    assert value("ignis_prefill_seconds_count") > 0
    assert value("process_resident_memory_bytes") > 0


def test_metrics_of_a_busy_engine() -> None:
    now = busy()
    registry = CollectorRegistry()
    registry.register(EngineCollector(lambda: now))
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    assert all(family.documentation for family in families)
    found = {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
    reuse = now.reuse
    expected = {
        ("ignis_reuse_lookups_total", "hit"): reuse.hits,
        ("ignis_reuse_lookups_total", "miss"): reuse.misses,
        ("ignis_cached_prompt_tokens_total",): reuse.cached_tokens,
        ("ignis_evictions_total",): reuse.evictions,
        ("ignis_spills_total",): reuse.spills,
        ("ignis_restores_total",): reuse.restores,
        ("ignis_parks_total",): reuse.parks,
        ("ignis_resumes_total",): reuse.resumes,
        ("ignis_kept_states",): reuse.kept,
        ("ignis_kept_pages",): reuse.kept_pages,
        ("ignis_host_tier_bytes", "used"): reuse.host_used,
        ("ignis_host_tier_bytes", "free"): reuse.host_total - reuse.host_used,
        ("ignis_disk_tier_bytes",): reuse.disk_used,
        ("ignis_parked_requests",): 1,
        ("ignis_queued_requests", "interactive"): 1,
        ("ignis_queued_requests", "agent"): 6,
        ("ignis_lanes", "decode"): 5,
        ("ignis_lanes", "prefill"): 1,
    }
    assert {key: found.get(key) for key in expected} == expected


def test_docs_describe_every_body(http: httpx.Client) -> None:
    assert http.get("/docs").status_code == 200
    schema = http.get("/openapi.json").json()
    known = schema["components"]["schemas"]
    for path, methods in schema["paths"].items():
        if "post" in methods and not path.endswith(("}/cancel", "}/park")):  # those say all in their path
            content = methods["post"]["requestBody"]["content"]
            if path == "/v1/files":
                assert "file" in content["multipart/form-data"]["schema"]["properties"]
                continue
            assert content["application/json"]["schema"]["$ref"].rsplit("/", 1)[1] in known, path

    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            return [v for k, v in value.items() if k == "$ref"] + [r for v in value.values() for r in references(v)]
        return [r for v in value for r in references(v)] if isinstance(value, list) else []

    assert {r.rsplit("/", 1)[1] for r in references(schema)} <= set(known)
