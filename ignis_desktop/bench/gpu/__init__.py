"""What the card does: every kernel against float64 and against its floor, whole rounds, prompts, loading."""
