# SPDX-License-Identifier: Apache-2.0
"""A module of your own (docs/models.md): from a plain PyTorch file to the training, and back.

    python3 module.py                # writes module.pt, which job.yaml names
    lambdadnn run job.yaml --out out
    python3 module.py out/model.pt   # the trained module: sizes of its tensors, and what it says of an image
"""
import sys

import torch


class Digits(torch.nn.Module):
    """A convolution with batch norm, a branch around a second one, and a layer for ten classes."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.classes = torch.nn.Linear(8 * 7 * 7, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(images)))
        x = torch.nn.functional.max_pool2d(x + torch.relu(self.second(x)), 2)
        return self.classes(x.flatten(1))


def trained(path):
    """The module with the state of a trained file."""
    module = Digits()
    module.load_state_dict(torch.jit.load(path).state_dict(), strict=True)
    return module.eval()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        torch.manual_seed(1)
        torch.jit.script(Digits()).save("module.pt")
    else:
        digits = trained(sys.argv[1])
        for name, tensor in digits.state_dict().items():
            print(name, list(tensor.shape))
        print("of an empty image:", digits(torch.zeros(1, 1, 28, 28)).argmax(1).item())
