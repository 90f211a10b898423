"""Who runs when: the queue, the lanes, prefill chunks and decode rounds."""
