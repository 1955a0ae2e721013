"""Experiments as data: which streams, which methods, which seeds; published figures beside ours."""
