"""Lightning as its documentation shows it: module, data module, Trainer, fit; 6 steps of 16 on each rank."""

import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from paceline.training.models.torchvision_import import torchvision_models

torchvision_models()  # a torchvision for CUDA beside a PyTorch for the CPU breaks Lightning's import: mended before it

import lightning  # noqa: E402


class AutoEncoder(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))

    def training_step(self, batch, batch_idx):
        (inputs,) = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(inputs)), inputs)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Noise(lightning.LightningDataModule):
    def prepare_data(self) -> None:
        """One rank prepares while the others wait: Lightning has them meet at a monitored barrier."""

    def train_dataloader(self):
        return DataLoader(TensorDataset(torch.randn(96 * devices, 64)), batch_size=16)


warnings.simplefilter("ignore")
devices = int(sys.argv[1])
lightning.seed_everything(1)
model = AutoEncoder()
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=devices,
    strategy="ddp" if devices > 1 else "auto",
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, Noise())
print(f"checksum {sum(p.double().sum() for p in model.parameters()).item()!r}", flush=True)
