"""Processes that fight for one lock: python lock_racer.py FOLDER LANES TURNS

Every lane starts a process again and again. It takes the lock if it can, looks whether it is alone, and then
releases it or dies with it in its hand. Prints how many held it and how often two did at once.
"""

import os
import random
import sys
import time
from pathlib import Path

from paceline.errors import FolderError
from paceline.studies.folder.lock import StudyLock

HELD, REFUSED, NOT_ALONE = 0, 1, 2


def turn(folder: Path, chance: random.Random) -> int:
    witness = folder / "inside"
    try:
        with StudyLock(folder / "lock"):
            try:
                os.close(os.open(witness, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return NOT_ALONE
            time.sleep(chance.random() / 500)
            witness.unlink()
            if chance.random() < 0.7:
                os._exit(HELD)  # as after SIGKILL: the lock stays
    except FolderError:
        return REFUSED
    return HELD


def lane(folder: Path, number: int, turns: int) -> None:
    chance, counts = random.Random(number), [0, 0, 0]
    for _ in range(turns):
        child = os.fork()
        if child == 0:
            os._exit(turn(folder, chance))
        counts[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
        chance.random()
    os.write(1, f"{counts[HELD]} {counts[NOT_ALONE]}\n".encode())


def main() -> None:
    folder, lanes, turns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    children = []
    for number in range(lanes):
        child = os.fork()
        if child == 0:
            lane(folder, number, turns)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
