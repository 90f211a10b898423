"""The memory plan: every buffer the engine will hold, line by line, before anything is loaded.

``plan_host`` plans the CPU's memory, ``plan_vram`` a card's, from the same geometry; ``plan_load`` is what the loader
asks on this machine.
"""

from engine.memory.plan.budget import MAX_PIXELS
from engine.memory.plan.host import plan_host
from engine.memory.plan.load import check_runs, plan_load
from engine.memory.plan.machine import Memory, card_memory, host_memory
from engine.memory.plan.mend import Mend
from engine.memory.plan.result import Layout, PlanError
from engine.memory.plan.vram import plan_vram
from engine.memory.plan.weights import Weights, on_card, plain_on_card, published, unpacked

__all__ = [
    "MAX_PIXELS",
    "Layout",
    "Memory",
    "Mend",
    "PlanError",
    "Weights",
    "card_memory",
    "check_runs",
    "host_memory",
    "on_card",
    "plain_on_card",
    "plan_host",
    "plan_load",
    "plan_vram",
    "published",
    "unpacked",
]
