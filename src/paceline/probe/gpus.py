"""Counters of GPUs: memory of torch's allocator, energy and utilisation from NVML.

torch is used only if the rank has imported it and uses a GPU; NVML only if `pynvml` is installed.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def gpu_memory() -> dict[str, int]:
    """Bytes that torch's allocator has reserved on all GPUs, now and at the peak; empty if it uses none.

    Each GPU is queried by its number, which creates no context on it.
    """
    torch = sys.modules.get("torch")
    used = getattr(getattr(torch, "cuda", None), "is_initialized", None)  # absent during the import
    if torch is None or used is None or not used():
        return {}
    memory = [torch.cuda.memory_stats(number) for number in range(torch.cuda.device_count())]
    return {
        "gpu_memory_bytes": sum(stats.get("reserved_bytes.all.current", 0) for stats in memory),
        "gpu_peak_bytes": sum(stats.get("reserved_bytes.all.peak", 0) for stats in memory),
    }


class Nvml:
    """Energy and utilisation of the visible GPUs of this host."""

    def __init__(self, nvml: ModuleType | None) -> None:
        self._nvml: Any = nvml
        self._handles: list[Any] = []
        self._first_uj: int | None = None
        if nvml is not None:
            try:
                self._nvml.nvmlInit()
                count = self._nvml.nvmlDeviceGetCount()
                self._handles = [self._nvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
            except self._nvml.NVMLError:  # no driver, or no GPU
                self._handles = []

    def sample(self) -> dict[str, int]:
        """Microjoules since the first sample and mean utilisation in percent; without values that some GPU lacks."""
        if not self._handles:
            return {}
        found = {}
        energy_mj = self._each("nvmlDeviceGetTotalEnergyConsumption")
        percent = self._each("nvmlDeviceGetUtilizationRates")
        if energy_mj is not None:
            total_uj = sum(energy_mj) * 1000
            self._first_uj = total_uj if self._first_uj is None else self._first_uj
            found["gpu_uj"] = total_uj - self._first_uj
        if percent is not None:
            found["gpu_use_percent"] = round(sum(rates.gpu for rates in percent) / len(percent))
        return found

    def _each(self, question: str) -> list[Any] | None:
        """The value of every GPU; None if one does not support it: older GPUs have no energy meter."""
        try:
            return [getattr(self._nvml, question)(handle) for handle in self._handles]
        except self._nvml.NVMLError:
            return None


def nvml() -> ModuleType | None:
    """NVIDIA's management library; None if it is not installed."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]
    except (ImportError, FutureWarning):  # it warns of its successor, and a script may turn warnings into errors
        return None
    return pynvml
