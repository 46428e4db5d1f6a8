"""Build what is released, and try it as a user gets it: python .ci/release.py

Builds sdist and wheel into dist/, installs the wheel into a new environment outside the checkout, and there runs the
study of the digits and a script under the probe. Torch comes as constraints.txt pins it, from where pip has it.
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
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], cwd=ROOT)
    (wheel,) = DIST.glob("*.whl")
    (sdist,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="paceline release ") as folder:
        _try_out(wheel, Path(folder))
    print(f"Built and tried: {sdist.relative_to(ROOT)}, {wheel.relative_to(ROOT)}")


def _try_out(wheel: Path, folder: Path) -> None:
    """Install a wheel into an environment of its own, and use it; raises where a command fails or leaves no report."""
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env" / "bin" / "python")
    work = folder / "work"
    work.mkdir()
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], cwd=work)
    where = "import paceline; print(paceline.__file__)"
    installed = _run([python, "-c", where], cwd=work, capture_output=True).stdout.strip()
    assert Path(installed).is_relative_to(folder), f"{installed} is not what was installed"
    paceline = [str(folder / "env" / "bin" / "paceline")]
    _run([*paceline, "--help"], cwd=work, capture_output=True)
    _run([*paceline, "study", "digits", "--out", "digits"], cwd=work)
    (work / "script.py").write_text(SCRIPT)
    _run([*paceline, "run", "--ranks", "2", "--out", "script", "--", "script.py"], cwd=work)
    for report in ("digits/report.html", "script/report.html"):
        text = (work / report).read_text()
        assert text.rstrip().endswith("</html>"), f"{report} is not a whole page"
    found = _run([*paceline, "report", "digits", "--json"], cwd=work, capture_output=True).stdout
    assert len(json.loads(found)) > 0


def _run(words: list[str], **options) -> subprocess.CompletedProcess[str]:
    """A command that must succeed, without what this process' environment has of Python's paths."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PACELINE_CACHE"] = str(Path(options["cwd"]) / "cache")
    return subprocess.run(words, check=True, text=True, env=environment, **options)


if __name__ == "__main__":
    main()
