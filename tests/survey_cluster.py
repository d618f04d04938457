"""``python survey_cluster.py``: a Dask cluster of two worker processes; prints its address, and ends with its standard input."""

# ruff: noqa: T201  # it is a program, which says where it is

from __future__ import annotations

import sys

from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
