"""The local HTTP server. Modules are imported one by one: reading the runtime file must not load FastAPI."""
