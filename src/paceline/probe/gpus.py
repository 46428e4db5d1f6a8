"""What there is to count of GPUs: the memory that torch holds, and energy and use as NVIDIA's library tells them.

torch is asked only where the rank itself has loaded it and uses a GPU; NVML only where `pynvml` is installed.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def gpu_memory() -> dict[str, int]:
    """Bytes that torch's allocator holds on all GPUs of this process, now and at most; empty where it uses none.

    The thread that asks has no GPU of its own, so each is asked for by number; that makes no context on it.
    """
    torch = sys.modules.get("torch")
    used = getattr(getattr(torch, "cuda", None), "is_initialized", None)  # absent while it is being loaded
    if torch is None or used is None or not used():
        return {}
    held = [torch.cuda.memory_stats(number) for number in range(torch.cuda.device_count())]
    return {
        "gpu_memory_bytes": sum(stats.get("reserved_bytes.all.current", 0) for stats in held),
        "gpu_peak_bytes": sum(stats.get("reserved_bytes.all.peak", 0) for stats in held),
    }


class Nvml:
    """Energy and use of the GPUs of this host that the job can see."""

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
        """Microjoules since the first sample and mean use in percent; what a GPU cannot tell is left out."""
        if not self._handles:
            return {}
        found = {}
        energy_mj, percent = (
            self._each("nvmlDeviceGetTotalEnergyConsumption"),
            self._each("nvmlDeviceGetUtilizationRates"),
        )
        if energy_mj is not None:
            total_uj = sum(energy_mj) * 1000
            self._first_uj = total_uj if self._first_uj is None else self._first_uj
            found["gpu_uj"] = total_uj - self._first_uj
        if percent is not None:
            found["gpu_use_percent"] = round(sum(rates.gpu for rates in percent) / len(percent))
        return found

    def _each(self, question: str) -> list[Any] | None:
        """The answer of every GPU; None where one has none: older ones have no meter."""
        try:
            return [getattr(self._nvml, question)(handle) for handle in self._handles]
        except self._nvml.NVMLError:
            return None


def nvml() -> ModuleType | None:
    """NVIDIA's management library; None where it is not installed."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]
    except (ImportError, FutureWarning):  # it warns of its own successor; a script may take that for an error
        return None
    return pynvml
