# SPDX-License-Identifier: Apache-2.0
"""Images a second of one core, decoded and brought to one size: torchvision's ImageFolder with
Resize, CenterCrop and ToTensor in a loader of one process, beside a worker's reader, in turns, in
processor time. Needs torchvision and Pillow.

usage: python3 tests/bench/decode_python.py [build/release/bin/lambdadnn-dataset]
"""
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import PIL.Image
import torch
import torchvision

IMAGES, ROUNDS, SIDE = 120, 3, 224
SIZES = ((500, 375), (375, 500), (640, 480), (400, 300))


def make_images(folder):
    """JPEGs with the detail of photographs: noise of several scales."""
    generator = random.Random(1)
    for number in range(IMAGES):
        width, height = SIZES[number % len(SIZES)]
        image = PIL.Image.new("RGB", (width, height))
        for scale in (64, 16, 4):
            small = PIL.Image.frombytes("RGB", (width // scale, height // scale),
                                        generator.randbytes(width // scale * (height // scale) * 3))
            image = PIL.Image.blend(image, small.resize((width, height), PIL.Image.BICUBIC), 0.5)
        path = folder / f"c{number % 3}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        image.save(path, quality=90)


def torchvision_rate(folder):
    torch.set_num_threads(1)
    transforms = torchvision.transforms
    images = torchvision.datasets.ImageFolder(folder, transforms.Compose(
        [transforms.Resize(SIDE), transforms.CenterCrop(SIDE), transforms.ToTensor()]))
    loader = torch.utils.data.DataLoader(images, batch_size=32)
    begin = time.process_time()
    count = sum(len(labels) for _, labels in loader)
    return count / (time.process_time() - begin)


def reader_rate(program, folder):
    """Starting and listing included."""
    def seconds(place):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "inspect", place, "--format", "ImageFolder", "--image-height", str(SIDE),
                        "--image-width", str(SIDE)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return IMAGES / seconds(folder)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/lambdadnn-dataset"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make_images(folder)
        theirs, ours = [], []
        for _ in range(ROUNDS):
            theirs.append(torchvision_rate(folder))
            ours.append(reader_rate(program, folder))
    print(f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}: "
          f"{statistics.median(theirs):.0f} images/s a core")
    print(f"lambdadnn:   {statistics.median(ours):.0f} images/s a core, "
          f"{statistics.median(a / b for a, b in zip(ours, theirs, strict=True)):.2f} times as many")


main()
