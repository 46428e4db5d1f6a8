"""Build sdist and wheel into dist/, and try the wheel as a user would: python .ci/release.py

The wheel is installed into an empty environment outside the checkout, which then runs the study `digits` and a script.
Dependencies come from pip, in the versions of constraints.txt.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SCRIPT = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


def main() -> None:
    _say("Building sdist and wheel")
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], cwd=ROOT, capture_output=True)
    (wheel,) = DIST.glob("*.whl")
    (sdist,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="paceline release ") as folder:
        _try_out(wheel, Path(folder))
    _say("Ready to publish")
    for built in (sdist, wheel):
        print(f"  {built.relative_to(ROOT)}  {built.stat().st_size / 1e6:.1f} MB", flush=True)


def _try_out(wheel: Path, folder: Path) -> None:
    """Install a wheel into a new environment below a folder and use it; exits where a command fails."""
    environment, work = folder / "environment", folder / "work"
    work.mkdir()
    _say(f"Installing {wheel.name} into an empty environment in {folder}")
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], cwd=work)
    imported = _run([python, "-c", "import paceline; print(paceline.__file__)"], cwd=work, capture_output=True)
    if not Path(imported.strip()).is_relative_to(environment):
        sys.exit(f"The environment imports {imported.strip()}, not the wheel.")
    paceline = [str(environment / "bin" / "paceline")]
    _say("Running: paceline study digits")
    _run([*paceline, "study", "digits", "--out", "digits"], cwd=work)
    (work / "script.py").write_text(SCRIPT)
    _say("Running: paceline run --ranks 2 -- script.py")
    _run([*paceline, "run", "--ranks", "2", "--out", "script", "--", "script.py"], cwd=work)
    for name in ("digits", "script"):
        if not (work / name / "report.html").read_text().rstrip().endswith("</html>"):
            sys.exit(f"{name}/report.html is not a whole page.")
    json.loads(_run([*paceline, "report", "digits", "--json"], cwd=work, capture_output=True))


def _say(step: str) -> None:
    print(f"== {step}", flush=True)


def _run(command: list[str], *, cwd: Path, capture_output: bool = False) -> str:
    """Standard output of a command that must succeed. Its environment has no Python paths of this process."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables["PACELINE_CACHE"] = str(cwd / "cache")
    done = subprocess.run(command, cwd=cwd, env=variables, text=True, capture_output=capture_output)
    if done.returncode != 0:
        sys.exit(f"{done.stdout or ''}{done.stderr or ''}\nFailed with {done.returncode}: {' '.join(command)}")
    return done.stdout or ""


if __name__ == "__main__":
    main()
