# SPDX-License-Identifier: Apache-2.0
"""The networks with branches and batch norm, in PyTorch: names, shapes and initialisation of torchvision 0.14
(resnet18, resnet50, mobilenet_v2), and of Kim's network for sentences (2014). Each is made once with the sizes
below, which stand for those that a job chooses; those for images again with group norm in place of batch norm.

`python3 networks.py [FOLDER]` writes NAME.pt.gz there, else beside this file, and digests.txt: TorchScript without
weights, and a table of the shape and the first values of each. The worker has them inside (network_model.cc)."""
import gzip
import hashlib
import io
import math
import os
import pathlib
import sys
import warnings
import zipfile

import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
# Numbers that no layer has by itself, each for a size that a job chooses (network.h).
SIZES = {"classes": 1009, "channels": 37, "firstKernel": 31, "vocabulary": 1013, "embedding": 131, "width": 137,
         "kernel1": 11, "kernel2": 13, "kernel3": 17}
TABLE = "table.txt"


# Groups of a norm, as many as its channels allow; 32 is what "Group Normalization" (Wu and He, 2018) takes.
GROUPS = 32


def group_norm(channels):
    return nn.GroupNorm(math.gcd(GROUPS, channels), channels)


class FirstConv(nn.Module):
    """The first convolution: the job's images decide on its kernel and stride."""

    first_stride: int

    def __init__(self, out_channels):
        super().__init__()
        kernel = SIZES["firstKernel"]
        self.weight = nn.Parameter(torch.empty(out_channels, SIZES["channels"], kernel, kernel))
        self.first_stride = 2

    def forward(self, x):
        return functional.conv2d(x, self.weight, None, [self.first_stride], [self.weight.size(2) // 2])


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = norm(width)
        self.downsample = shortcut(inputs, width, stride, norm)

    def forward(self, x):
        out = functional.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return functional.relu(out + self.downsample(x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride, norm):
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = norm(outputs)
        self.downsample = shortcut(inputs, outputs, stride, norm)

    def forward(self, x):
        out = functional.relu(self.bn1(self.conv1(x)))
        out = functional.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return functional.relu(out + self.downsample(x))


def shortcut(inputs, outputs, stride, norm):
    if stride == 1 and inputs == outputs:
        return nn.Sequential()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), norm(outputs))


class ResNet(nn.Module):
    first_pool: bool

    def __init__(self, block, depths, norm=nn.BatchNorm2d):
        super().__init__()
        self.first_pool = True
        self.conv1 = FirstConv(64)
        self.bn1 = norm(64)
        inputs = 64
        for number, depth in enumerate(depths):
            width = 64 << number
            blocks = []
            for index in range(depth):
                blocks.append(block(inputs, width, 2 if number > 0 and index == 0 else 1, norm))
                inputs = width * block.expansion
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, SIZES["classes"])

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        if self.first_pool:
            x = functional.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def conv_norm(norm, inputs, outputs, kernel, stride=1, groups=1, activation=True):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              norm(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU6()] if activation else []))


class InvertedResidual(nn.Module):
    skip: bool

    def __init__(self, inputs, outputs, stride, expansion, norm):
        super().__init__()
        hidden = inputs * expansion
        layers = [] if expansion == 1 else [conv_norm(norm, inputs, hidden, 1)]
        layers += [conv_norm(norm, hidden, hidden, 3, stride, groups=hidden),
                   *conv_norm(norm, hidden, outputs, 1, activation=False)]
        self.conv = nn.Sequential(*layers)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x):
        if self.skip:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nn.Module):
    dropout: float

    # Expansion, channels, blocks, stride of the first.
    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
              (6, 320, 1, 1))

    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.dropout = 0.2
        layers = [nn.Sequential(FirstConv(32), norm(32), nn.ReLU6())]
        inputs = 32
        for expansion, outputs, blocks, stride in self.STAGES:
            for index in range(blocks):
                layers.append(InvertedResidual(inputs, outputs, stride if index == 0 else 1, expansion, norm))
                inputs = outputs
        layers.append(conv_norm(norm, inputs, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Identity(), nn.Linear(1280, SIZES["classes"]))

    def forward(self, x):
        x = functional.adaptive_avg_pool2d(self.features(x), 1).flatten(1)
        return self.classifier(functional.dropout(x, self.dropout, self.training))


class TextCnn(nn.Module):
    dropout: float

    def __init__(self):
        super().__init__()
        self.dropout = 0.5
        self.embedding = nn.Embedding(SIZES["vocabulary"], SIZES["embedding"])
        self.convs = nn.ModuleList([nn.Conv1d(SIZES["embedding"], SIZES["width"], SIZES[f"kernel{number}"])
                                    for number in (1, 2, 3)])
        self.fc = nn.Linear(3 * SIZES["width"], SIZES["classes"])

    def forward(self, x):
        x = self.embedding(x).transpose(1, 2)
        maxima: list[torch.Tensor] = []
        for conv in self.convs:
            maxima.append(functional.relu(conv(x)).amax(2))
        return self.fc(functional.dropout(torch.cat(maxima, 1), self.dropout, self.training))


NETWORKS = {
    "resnet18": lambda: ResNet(BasicBlock, (2, 2, 2, 2)),
    "resnet50": lambda: ResNet(Bottleneck, (3, 4, 6, 3)),
    "mobilenet": MobileNetV2,
    "textcnn": TextCnn,
    "resnet18_group": lambda: ResNet(BasicBlock, (2, 2, 2, 2), group_norm),
    "resnet50_group": lambda: ResNet(Bottleneck, (3, 4, 6, 3), group_norm),
    "mobilenet_group": lambda: MobileNetV2(group_norm),
}


def sizes_of(shape):
    """The shape with names in place of the numbers that a job chooses."""
    names = {number: name for name, number in SIZES.items()}
    names[3 * SIZES["width"]] = "3*width"
    return ",".join(str(names.get(number, number)) for number in shape)


def first_values(module, leaf):
    """Kind, fan, deviation: PyTorch's default initialisation, and torchvision's of convolutions and of mobilenet's
    last layer. With a fan a normal distribution has the deviation sqrt(2 / fan), of outputs; a uniform one
    is within 1 / sqrt(fan), of inputs."""
    if isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
        return "ones - -" if leaf in ("weight", "running_var") else "zeros - -"
    if isinstance(module, nn.Embedding):
        return "normal - 1"
    shape = module.weight.shape
    if isinstance(module, (nn.Conv2d, FirstConv)):
        return f"normal {sizes_of([shape[0], *shape[2:]])} -"
    if isinstance(module, nn.Linear) and module.in_features == 1280:
        return "normal - 0.01" if leaf == "weight" else "zeros - -"
    return f"uniform {sizes_of(shape[1:])} -"


def table_of(network):
    """A line each: name, shape, first values."""
    rows = []
    for prefix, module in network.named_modules():
        tensors = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for leaf, tensor in tensors:
            if leaf != "num_batches_tracked":
                rows.append(f"{prefix}.{leaf} {sizes_of(tensor.shape)} {first_values(module, leaf)}\n")
    return "".join(rows)


def archive_of(network):
    """The module without numbers, with its table; nothing in it tells where and when it was made."""
    table = table_of(network)
    script = torch.jit.script(network)
    for _, tensor in [*script.named_parameters(), *script.named_buffers()]:
        if tensor.dim() > 0:
            tensor.data = torch.empty(0)
    whole = io.BytesIO()
    torch.jit.save(script, whole, _extra_files={TABLE: table})
    archive = io.BytesIO()
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(archive, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                target.writestr(zipfile.ZipInfo(entry.filename), source.read(entry))
    return archive.getvalue()


def build():
    """The archives by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return {name: archive_of(make()) for name, make in NETWORKS.items()}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    digests = []
    for name, archive in build().items():
        (folder / f"{name}.pt.gz").write_bytes(gzip.compress(archive, mtime=0))
        digests.append(f"{hashlib.sha256(archive).hexdigest()}  {name}.pt\n")
    (folder / "digests.txt").write_text("".join(digests))
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # PyTorch writes constants in the order of a set
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
