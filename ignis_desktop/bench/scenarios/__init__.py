"""Scenarios of ``ignis bench serve``: each is an async function from a ``Bench`` to a ``ScenarioReport``."""
