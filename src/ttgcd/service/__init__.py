"""HTTP service and live page: callers of sessions (extra ``serve``)."""
