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


class Normed(nn.Module):
    """Convolutions with batch norm after each; in the last, without a momentum, all steps count alike."""

    def __init__(self, channels=4, classes=10, momentum=None):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, stride=2, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, 2 * channels, 3, stride=2, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * channels, momentum=momentum)
        self.out = nn.Linear(2 * channels, classes)

    def forward(self, x):
        if x.dim() == 3:
            x = x.unsqueeze(1)
        x = torch.relu(self.norm1(self.first(x)))
        x = torch.relu(self.norm2(self.second(x)))
        return self.out(x.mean(dim=(2, 3)))


class Kept(nn.Module):
    """A mean that the module keeps by itself, in a new tensor each time."""

    def __init__(self, features, outputs, dtype=torch.float32):
        super().__init__()
        self.register_buffer("seen", torch.ones(features, dtype=dtype))
        self.out = nn.Linear(features, outputs)

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * (x.mean(0) + self.out.weight.mean()).to(self.seen.dtype)
        return self.out(x - self.seen.to(x.dtype).detach())


class Tied(nn.Module):
    """One tensor under two names."""

    def __init__(self, features):
        super().__init__()
        self.first = nn.Linear(features, features)
        self.second = nn.Linear(features, features)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x.flatten(1)))


class Tokens(nn.Module):
    """Token ids: an embedding, which the output layer shares."""

    def __init__(self, vocabulary=50, width=10):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, vocabulary)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(self.embedding(x).mean(1))))


class Vector(nn.Module):
    """A single output without a dimension of its own."""

    def __init__(self, features):
        super().__init__()
        self.out = nn.Linear(features, 1)

    def forward(self, x):
        return self.out(x.flatten(1)).squeeze(1)


class Saving(Flat):
    def forward(self, x):
        torch.save(x, "file")
        return self.out(x)


class Printing(Flat):
    """Where its own forward calls it."""

    def forward(self, x):
        return self.tell(self.out(x))

    def tell(self, x):
        if x.size(0) > 100:
            print(x.size(0))
        return x


class Seeding(Flat):
    def forward(self, x):
        torch.manual_seed(1)
        return self.out(x)


class Endless(Flat):
    def forward(self, x):
        while x.numel() > 0:
            x = x + 1
        return self.out(x)


class Growing(Flat):
    def forward(self, x):
        kept = [x]
        while len(kept) > 0:
            kept.append(torch.zeros(1 << 20))
        return self.out(x)


class Stateful(nn.Module):
    """Runs when it is read: here it writes a file, and it could do anything."""

    def __init__(self, features, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(outputs, features))

    def forward(self, x):
        return x.flatten(1) @ self.weight.t()

    @torch.jit.export
    def __getstate__(self):
        return self.weight, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool]):
        torch.save(state[0], "/tmp/written-when-read")
        self.weight = state[0]
        self.training = state[1]


@torch.jit.script
def add_one(x: torch.Tensor):
    return x + 1


class Forked(Flat):
    def forward(self, x):
        return torch.jit.wait(torch.jit.fork(add_one, self.out(x)))
