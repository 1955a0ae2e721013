"""Speed as ratios within one run: `python -m benchmarks.speed` measures and writes the table."""
