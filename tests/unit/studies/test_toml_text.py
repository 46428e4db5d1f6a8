import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline import catalog
from paceline.records.settings import DataSettings, LaunchSettings, ModelSettings, RunSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.load.files import with_absolute_paths
from paceline.studies.load.load import load_study
from paceline.studies.load.toml_text import study_toml, toml_value

TEXT = st.text(max_size=40)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.one_of(TEXT, st.booleans(), WHOLE, NUMBERS)
POSITIVE = st.floats(min_value=1e-300, max_value=1e300)


LINES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
"""Without control characters and spaces, as names of hosts and options of a scheduler are."""
HOSTS = st.lists(st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True), min_size=3, max_size=5, unique=True)
FACTORS = {
    "data.read": ("mapped", "whole", "mpi-io"),
    "data.train_samples": (4096, 5000, 2**40),
    "train.lr": (0.1, 1e-300, 1.0),
    "train.weight_decay": (0.0, 0.1),
    "train.precision": ("float32", "float64", "bfloat16"),
    "run.hosts": (1, 2, 3),
    "run.threads": (1, 2, 4096),
    "run.strategy": catalog.names("strategy"),
    "run.launcher": ("mpi", "slurm"),
    "run.pin": (True, False),
    "run.servers": (1, 2),
    "run.average_every": (1, 8),
}


@st.composite
def factors(draw: st.DrawFn) -> dict[str, tuple]:
    """What a study may vary, in any order that a file can have: all keys of a section are together."""
    chosen = draw(st.permutations(draw(st.lists(st.sampled_from(sorted(FACTORS)), max_size=4, unique=True))))
    sections = list(dict.fromkeys(path.split(".")[0] for path in chosen))
    values = {path: st.lists(st.sampled_from(FACTORS[path]), min_size=2, max_size=3, unique=True) for path in chosen}
    return {path: tuple(draw(values[path])) for path in sorted(chosen, key=lambda p: sections.index(p.split(".")[0]))}


@st.composite
def launches(draw: st.DrawFn) -> LaunchSettings:
    return LaunchSettings(
        machines=tuple(draw(HOSTS)),
        agent=tuple(draw(st.lists(LINES, min_size=1, max_size=3))),
        interface=draw(LINES),
        mpiexec=draw(LINES),
        start=draw(st.sampled_from(("srun", "mpiexec"))),
        account=draw(LINES),
        partition=draw(LINES),
        time_limit=draw(LINES),
        constraint=draw(LINES),
        gpus_per_host=draw(st.integers(0, 8)),
        directives=tuple(draw(st.lists(LINES, max_size=3))),
        modules=tuple(draw(st.lists(LINES, max_size=3))),
        grace_s=draw(st.floats(0, 1e300)),
        ray_address=draw(LINES),
        spread=draw(st.booleans()),
    )


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """Valid studies with every key in it, with factors, and with the strangest names that are allowed."""
    strong = draw(st.booleans())
    ranks = draw(st.lists(st.integers(3, 1024), min_size=1, max_size=4, unique=True))
    batch, length = draw(st.integers(4096, 2**40)), draw(st.integers(1, 2**40))
    # Servers, which may be drawn beside it, cannot step whole layers.
    whole = [name for name, entry in catalog.entries("optimizer") if not entry.by_layer]
    optimizer = draw(st.sampled_from(whole))
    synthetic, longer, per_host = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    strategy, vary = draw(st.sampled_from(catalog.names("strategy"))), draw(factors())
    taken = {option for name in vary.get("run.strategy", (strategy,)) for option in catalog.strategy(name).options}
    vary = {p: v for p, v in vary.items() if p not in ("run.servers", "run.average_every") or p[4:] in taken}
    study = Study(
        name=draw(st.from_regex(r"[\w]([\w .+-]{0,20}[\w+-])?", fullmatch=True)),
        title=draw(TEXT),
        question=draw(TEXT),
        data=DataSettings(
            dataset="synthetic" if synthetic else draw(st.sampled_from(("mnist", "digits", "fashion-mnist"))),
            train_samples=draw(st.none() | st.integers(4096, 2**40)),
            validation=draw(st.floats(0, 1) | st.integers(0, 10**6).map(float)),
            shape=draw(st.none() | st.tuples(*[st.integers(1, 99)] * 3)) if synthetic else None,
            classes=draw(st.none() | st.integers(2, 99)) if synthetic else None,
            samples=draw(st.none() | st.integers(1, 99)) if synthetic else None,
            read=draw(st.sampled_from(("mapped", "whole", "mpi-io"))),
        ),
        model=ModelSettings(
            # Of a pretrained network the options are looked at, too.
            name=draw(st.sampled_from(("cnn-690k", "cnn-small", "mlp"))),
            options=draw(
                st.dictionaries(
                    TEXT.filter(lambda key: key != "name"), SCALARS | st.lists(SCALARS, max_size=3), max_size=4
                )
            ),
        ),
        train=TrainSettings(
            optimizer=optimizer,
            lr=draw(POSITIVE),
            momentum=draw(st.floats(0, 1, exclude_max=True)) if optimizer == "sgd" else 0.0,
            weight_decay=draw(st.none() | st.floats(0, 1e300)),
            batch_global=batch if strong else None,
            batch_per_rank=None if strong else batch,
            epochs=length if longer else None,
            steps=None if longer else length,
            seed=draw(st.integers(0, 2**31 - 10_000)),
            checkpoint_every=draw(st.integers(0, 99)),
            precision=draw(st.sampled_from(("float32", "float64", "bfloat16"))),
        ),
        run=RunSettings(
            ranks=() if per_host else tuple(ranks),
            hosts=draw(st.integers(1, 3)),
            ranks_per_host=draw(st.integers(1, 9)) if per_host else None,
            threads=draw(st.integers(1, 4096)),
            strategy=strategy,
            launcher=draw(st.sampled_from(("mpi", "slurm"))),
            device=draw(st.sampled_from(("auto", "cpu", "cuda"))),
            pin=draw(st.booleans()),
            repeats=draw(st.integers(1, 10_000)),
            scaling="strong" if strong else "weak",
            heartbeat_s=draw(POSITIVE),
            **{option: draw(st.none() | st.integers(1, 9)) for option in sorted(taken)},
        ),
        launch=draw(launches()),
        vary=vary,
    )
    for path, values in vary.items():
        section, key = path.split(".")
        study = replace(study, **{section: replace(getattr(study, section), **{key: values[0]})})
    return study


@settings(max_examples=80, deadline=None)
@given(studies())
def test_what_is_written_is_read_back_equal(study: Study) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_bytes(study_toml(study).encode())
        again = load_study(path).study
    assert again == study
    assert list(again.vary) == list(study.vary), "points come in the order of the factors"
    kinds = [[type(item) for item in s.model.options.values()] for s in (study, again)]
    assert kinds[0] == kinds[1]  # True == 1 == 1.0, and a model may care


@given(TEXT, st.lists(SCALARS))
def test_values_are_toml(text: str, values: list[object]) -> None:
    assert tomllib.loads(f"x = {toml_value(text)}\ny = {toml_value(values)}") == {"x": text, "y": values}


@given(st.text())
def test_no_control_character_reaches_the_file(text: str) -> None:
    written = toml_value(text)
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in written)


def test_own_files_are_found_from_the_study_folder(tmp_path: Path) -> None:
    """Names with quotes, spaces and colons in them."""
    folder = tmp_path / 'it\'s "mine": ~x'
    folder.mkdir()
    (folder / "net.py").touch()
    (folder / "x y.npz").touch()
    (folder / "s.toml").write_text(
        '[study]\nname = "s"\n[model]\nname = "./net.py:build"\n[data]\ndataset = "x y.npz"\n'
        "[train]\nbatch_global = 8\nepochs = 1\n"
    )
    loaded = load_study(folder / "s.toml")
    elsewhere = tmp_path / "study.toml"
    elsewhere.write_text(study_toml(with_absolute_paths(loaded.study, loaded.base)))
    again = load_study(elsewhere)
    assert again.study.model.name == f"{folder}/net.py:build"
    assert again.study.data.dataset == f"{folder}/x y.npz"
    assert with_absolute_paths(again.study, again.base) == again.study
