# SPDX-License-Identifier: Apache-2.0
"""The built-in models as PyTorch modules.

The same seed gives the same initial bits, and the state dicts have the names, shapes and layouts of
the product's model.safetensors. Parameters are those of spec.model.builtin.parameters.
"""
import math

import torch
from torch import nn


class Dense(nn.Module):
    """Hidden layers with ReLU, then the output layer: fc1, fc2, ..."""

    def _add_dense(self, features, hidden, outputs):
        self.dense = []
        for number, width in enumerate([*hidden, outputs], start=1):
            layer = nn.Linear(features, width)
            self.add_module(f"fc{number}", layer)
            self.dense.append(f"fc{number}")
            features = width

    def _run_dense(self, x):
        for name in self.dense[:-1]:
            x = torch.relu(getattr(self, name)(x))
        return getattr(self, self.dense[-1])(x)


class Mlp(Dense):
    def __init__(self, shape, outputs, hidden=(128, 64)):
        super().__init__()
        self._add_dense(math.prod(shape), hidden, outputs)

    def forward(self, x):
        return self._run_dense(x.flatten(1))


class Convolutional(Dense):
    def __init__(self, axes, shape, outputs, channels, kernel, padding, pool, hidden):
        super().__init__()
        self.shape = ([1] if len(shape) == axes else []) + list(shape)
        convolution = nn.Conv1d if axes == 1 else nn.Conv2d
        self.pool = (nn.MaxPool1d if axes == 1 else nn.MaxPool2d)(pool)
        self.convolutions = []
        inside, size = self.shape[0], self.shape[1:]
        for number, width in enumerate(channels, start=1):
            self.add_module(f"conv{number}", convolution(inside, width, kernel, padding=padding))
            self.convolutions.append(f"conv{number}")
            inside, size = width, [(s + 2 * padding - kernel + 1) // pool for s in size]
        self._add_dense(inside * math.prod(size), hidden, outputs)

    def forward(self, x):
        x = x.reshape([-1, *self.shape])
        for name in self.convolutions:
            x = self.pool(torch.relu(getattr(self, name)(x)))
        return self._run_dense(x.flatten(1))


class Cnn(Convolutional):
    def __init__(self, shape, outputs, channels=(16, 32), kernel=5, padding=0, pool=2, hidden=(128,)):
        super().__init__(2, shape, outputs, channels, kernel, padding, pool, hidden)


class Cnn1d(Convolutional):
    def __init__(self, shape, outputs, channels=(16, 32), kernel=5, padding=2, pool=2, hidden=(64,)):
        super().__init__(1, shape, outputs, channels, kernel, padding, pool, hidden)


class Logistic(nn.Module):
    def __init__(self, shape, outputs):
        super().__init__()
        self.linear = nn.Linear(math.prod(shape), outputs)

    def forward(self, x):
        return self.linear(x.flatten(1))


def make(name, shape, outputs, **parameters):
    """The model `name` of a job: parameters that are one number may come as such."""
    kinds = {"mlp": Mlp, "cnn": Cnn, "cnn1d": Cnn1d, "logistic": Logistic}
    return kinds[name](shape, outputs, **parameters)
