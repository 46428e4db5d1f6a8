import tempfile
import tomllib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline import catalog
from paceline.records.study import DataSettings, ModelSettings, RunSettings, Study, TrainSettings
from paceline.studies.files import with_absolute_paths
from paceline.studies.load import load_study
from paceline.studies.toml_text import study_toml, toml_value

TEXT = st.text(max_size=40)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.one_of(TEXT, st.booleans(), WHOLE, NUMBERS)
POSITIVE = st.floats(min_value=1e-300, max_value=1e300)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """Valid studies with every key in it, and with the strangest names that are allowed."""
    strong = draw(st.booleans())
    ranks = draw(st.lists(st.integers(1, 4096), min_size=1, max_size=4, unique=True))
    batch, length = draw(st.integers(4096, 2**40)), draw(st.integers(1, 2**40))
    optimizer = draw(st.sampled_from(catalog.names("optimizer")))
    synthetic = draw(st.booleans())
    longer = draw(st.booleans())
    return Study(
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
        ),
        model=ModelSettings(
            name=draw(st.sampled_from(catalog.names("model"))),
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
            precision=draw(st.sampled_from(("float32", "float64"))),
        ),
        run=RunSettings(
            ranks=tuple(ranks),
            threads=draw(st.integers(1, 4096)),
            strategy=draw(st.sampled_from(catalog.names("strategy"))),
            device=draw(st.sampled_from(("auto", "cpu", "cuda"))),
            pin=draw(st.booleans()),
            repeats=draw(st.integers(1, 10_000)),
            scaling="strong" if strong else "weak",
            heartbeat_s=draw(POSITIVE),
        ),
    )


@settings(max_examples=300, deadline=None)
@given(studies())
def test_what_is_written_is_read_back_equal(study: Study) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_bytes(study_toml(study).encode())
        again = load_study(path).study
    assert again == study
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
