"""What monitors and scripts read."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families

from engine import Engine


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
    assert all({"name", "bytes", "why"} <= set(line) for line in plan["lines"])
    assert sum(line["bytes"] for line in plan["lines"]) == plan["total"]
    assert {"decode_tokens_per_second", "prefill_tokens_per_second"} <= set(body["rates"])


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


def test_docs_describe_every_body(http: httpx.Client) -> None:
    assert http.get("/docs").status_code == 200
    schema = http.get("/openapi.json").json()
    known = schema["components"]["schemas"]
    for path, methods in schema["paths"].items():
        if "post" in methods:
            reference = methods["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            assert reference.rsplit("/", 1)[1] in known, path

    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            return [v for k, v in value.items() if k == "$ref"] + [r for v in value.values() for r in references(v)]
        return [r for v in value for r in references(v)] if isinstance(value, list) else []

    assert {r.rsplit("/", 1)[1] for r in references(schema)} <= set(known)
