"""Ways in which a script ends, or never trains."""

import os
import signal
import sys

import torch
import torch.distributed as dist


class Oops(Exception):
    pass


def train(steps: int) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()


def main(how: str) -> None:
    assert sys.argv[1] == how and __file__.endswith("endings.py") and sys.path[0] == os.path.dirname(__file__)
    if how == "exits":
        train(2)
        sys.exit(3)
    if how == "says":
        sys.exit("No data.")
    if how == "raises":
        dist.init_process_group("gloo")
        train(2)
        if dist.get_rank() == 1:
            raise Oops("on purpose")
        dist.barrier()
    if how == "raises-in-forward":
        model = torch.nn.Linear(4, 2)
        torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(3, 5))
    if how == "interrupted":
        train(1)
        os.kill(os.getpid(), signal.SIGINT)
    if how == "forks":
        if os.fork() == 0:
            train(5)
            return
        train(2)
        os.wait()
    if how == "idle":
        print("nothing to train", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
