import os

SEED = int(os.environ.get("RUN_SEED", "11"))
BATCH = 4
