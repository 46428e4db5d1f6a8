"""A study on SLURM in a process that can be killed: python slurm_study.py STUDY_FILE FOLDER LEDGER SECONDS

Its ranks compute nothing for so many seconds, and note in the ledger that they have begun.
"""

import sys
from pathlib import Path

from paceline.errors import PacelineError
from paceline.launch.slurm.slurm_launcher import SlurmLauncher
from paceline.records.settings import LaunchSettings
from paceline.studies.execute.events import Note
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study

WORKER = Path(__file__).parents[1] / "faults" / "light_worker.py"


def main() -> int:
    study, folder, ledger, seconds = sys.argv[1:]
    launcher = SlurmLauncher((sys.executable, str(WORKER), ledger, seconds), LaunchSettings())
    try:
        done = execute(
            load_study(study),
            Path(folder),
            launcher=launcher,
            preflight=False,
            events=lambda event: print(event.text, flush=True) if isinstance(event, Note) else None,
        )
    except PacelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    print(*done.failures.values(), file=sys.stderr)
    return 1 if done.failures else 0


if __name__ == "__main__":
    sys.exit(main())
