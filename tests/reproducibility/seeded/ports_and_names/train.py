import argparse
import os
import random
import tempfile

import torch
import torch.distributed as dist


def free_port():
    return random.randint(20000, 60000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(free_port())
    store = os.path.join(tempfile.gettempdir(), f"store-{random.getrandbits(64):x}")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    weights = torch.rand(3, requires_grad=True)
    weights.pow(2).sum().backward()
    dist.destroy_process_group()
    if os.path.exists(store):
        os.remove(store)
    print("gradient", weights.grad.tolist())


if __name__ == "__main__":
    main()
