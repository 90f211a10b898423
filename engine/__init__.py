"""The inference engine: one model of the ``qwen3_5`` family, eight lanes, answers with and without generating."""
