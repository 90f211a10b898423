"""A request that shows what can be asked. In English in every language: the small model reads no other."""

from __future__ import annotations

from ignis_desktop.panels.decide_request import Draft

EXAMPLE = Draft(
    "Ticket 4821, from a shop in Lyon.\n\n"
    "Since this morning every card payment at our till is declined with “processor unavailable”. Cash still works. "
    "We have a queue of customers and the owner is very angry. Please call us back today.",
    questions={
        "urgent": {"type": "noul", "instructions": "Does this ticket have to be answered today?"},
        "team": {
            "type": "choice",
            "instructions": "Which team should take this ticket?",
            "options": {
                "payments": "payments and card terminals",
                "shipping": "shipping and returns",
                "accounts": "accounts and passwords",
            },
        },
        "mood": {
            "type": "score",
            "instructions": "How angry is the customer?",
            "options": ["calm", "annoyed", "angry", "furious"],
        },
        "topics": {
            "type": "multi",
            "instructions": "What is the ticket about?",
            "options": ["card payments", "a wrong delivery", "a forgotten password"],
        },
    },
)
