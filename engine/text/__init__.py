"""Text in and out of the model: tokens, chat template, incremental decoding."""
