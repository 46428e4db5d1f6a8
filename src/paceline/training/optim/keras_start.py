"""Weights as Keras starts with them, for what PyTorch starts differently.

    kernels of dense layers and convolutions    uniform in ± √(6 / (inputs + outputs))     (Glorot and Bengio 2010)
    their biases                                0
    batch normalisation                         1 and 0, as in PyTorch

PyTorch takes kernels and biases alike uniform in ± 1 / √inputs: for a dense layer of 128 on 9,216 inputs, ± 0.0104 in
place of Keras's ± 0.0253.
"""

from __future__ import annotations

from torch import nn
from torch.nn.modules.conv import _ConvNd

from paceline.training.models.transfer import Transfer


def start_as_keras(model: nn.Module) -> None:
    """Draw the weights anew; of a network with a pretrained base, those of its head alone."""
    for module in (model.head if isinstance(model, Transfer) else model).modules():
        if isinstance(module, nn.Linear | _ConvNd):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
