"""What cuBLAS needs to be deterministic, as torch checks it (read off the releases 1.7 to 2.15)."""

from __future__ import annotations

VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
VALUES = (":4096:8", ":16:8")
# From here on torch asks for it no more.
NOT_NEEDED_SINCE = (2, 10)
