"""Where images come from: folders, lists, tar shards, parquet and arrays, as ordered batches."""
