# SPDX-License-Identifier: Apache-2.0
"""Modules of the kind that users bring as TorchScript: branches, skips, control flow, dropout."""
import torch
from torch import nn


class Branches(nn.Module):
    """Two convolutions side by side, joined, with a skip around a third; group norm; dropout."""

    def __init__(self, side=28, channels=6, classes=10, dropout=0.0):
        super().__init__()
        self.narrow = nn.Conv2d(1, channels, 3, padding=1)
        self.wide = nn.Conv2d(1, channels, 5, padding=2)
        self.norm = nn.GroupNorm(2, 2 * channels)
        self.mix = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(2 * channels * (side // 4) ** 2, 32)
        self.out = nn.Linear(32, classes)

    def forward(self, x):
        if x.dim() == 3:
            x = x.unsqueeze(1)
        joined = torch.cat([torch.relu(self.narrow(x)), torch.relu(self.wide(x))], 1)
        joined = nn.functional.max_pool2d(self.norm(joined), 2)
        mixed = joined + torch.relu(self.mix(joined))
        flat = nn.functional.max_pool2d(mixed, 2).flatten(1)
        return self.out(self.drop(torch.relu(self.fc(flat))))


class Frozen(nn.Module):
    """A frozen layer, a buffer that never changes, and a layer to train."""

    def __init__(self, features, classes=10):
        super().__init__()
        self.features = nn.Linear(features, 12)
        self.features.requires_grad_(False)
        self.register_buffer("shift", torch.full((12,), 0.25))
        self.out = nn.Linear(12, classes)

    def forward(self, x):
        return self.out(torch.relu(self.features(x.flatten(1)) + self.shift))


class Flat(nn.Module):
    """One layer, after `inner` (batch norm, another dtype, ...) has had its turn."""

    def __init__(self, features, outputs, inner=None):
        super().__init__()
        self.inner = nn.Identity() if inner is None else inner
        self.out = nn.Linear(features, outputs)

    def forward(self, x):
        return self.out(self.inner(x.flatten(1)))


class Tied(nn.Module):
    """One tensor under two names."""

    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x.flatten(1)))


class Vector(nn.Module):
    """A single output without a dimension of its own."""

    def __init__(self, features):
        super().__init__()
        self.out = nn.Linear(features, 1)

    def forward(self, x):
        return self.out(x.flatten(1)).squeeze(1)
