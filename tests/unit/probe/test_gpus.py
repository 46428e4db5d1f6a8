"""Counters of GPUs, on a library that answers as NVIDIA's does: there is no GPU here to ask."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

from paceline.probe.gpus import Nvml, gpu_memory


class NVMLError(Exception):
    pass


def library(gpus: list[dict], *, driver: bool = True) -> ModuleType:
    """The functions of pynvml that are used; a GPU without an entry does not support the question."""
    made = ModuleType("pynvml")

    def init() -> None:
        if not driver:
            raise NVMLError("Driver Not Loaded")

    def answer(name: str):
        def ask(gpu: dict):
            if name not in gpu:
                raise NVMLError("Not Supported")
            return gpu[name]

        return ask

    made.__dict__.update(
        NVMLError=NVMLError,
        nvmlInit=init,
        nvmlDeviceGetCount=lambda: len(gpus),
        nvmlDeviceGetHandleByIndex=lambda number: gpus[number],
        nvmlDeviceGetTotalEnergyConsumption=answer("energy_mj"),
        nvmlDeviceGetUtilizationRates=answer("rates"),
    )
    return made


def test_energy_counts_from_the_first_sample_over_all_gpus() -> None:
    gpus = [{"energy_mj": 1_000_000}, {"energy_mj": 5}]
    nvml = Nvml(library(gpus))
    assert nvml.sample() == {"gpu_uj": 0}
    gpus[0]["energy_mj"] += 3
    gpus[1]["energy_mj"] += 4
    assert nvml.sample() == {"gpu_uj": 7_000}


def test_use_is_a_mean_over_gpus_and_a_gpu_without_a_meter_leaves_energy_out() -> None:
    gpus = [{"energy_mj": 10, "rates": SimpleNamespace(gpu=90)}, {"rates": SimpleNamespace(gpu=30)}]
    assert Nvml(library(gpus)).sample() == {"gpu_use_percent": 60}


def test_without_library_driver_or_gpu_nothing_is_measured() -> None:
    assert Nvml(None).sample() == {}
    assert Nvml(library([{"energy_mj": 1}], driver=False)).sample() == {}
    assert Nvml(library([])).sample() == {}


def test_torch_is_not_loaded_to_ask_for_its_memory(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert gpu_memory() == {}
    assert "torch" not in sys.modules


def test_torch_that_is_still_being_loaded_or_uses_no_gpu_has_none(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    assert gpu_memory() == {}
    cuda = SimpleNamespace(is_initialized=lambda: False)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert gpu_memory() == {}


def test_memory_is_that_of_all_gpus_of_the_process(monkeypatch) -> None:
    stats = [{"reserved_bytes.all.current": 100, "reserved_bytes.all.peak": 300}, {}]
    cuda = SimpleNamespace(is_initialized=lambda: True, device_count=lambda: 2, memory_stats=lambda n: stats[n])
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert gpu_memory() == {"gpu_memory_bytes": 100, "gpu_peak_bytes": 300}
