"""The same session on a Ray cluster: reading, decoding and encoding on a pool of workers."""
