# SPDX-License-Identifier: Apache-2.0
"""Writes the images of the folder `images`, and what Pillow reads from them: the CRC-32 of their pixels, whole
and brought to other sizes as torchvision's Resize(side) and CenterCrop(side) do.

Run with any Python that has Pillow: python3 tests/data/readers/make_images.py
"""
import json
import pathlib
import random
import zlib

from PIL import Image

FOLDER = pathlib.Path(__file__).parent / "images"
SIZES = [(16, 16), (23, 23), (48, 48), (20, 30), (30, 20), (1, 5)]  # height, width


def drawn():
    """37 x 23 pixels: slopes, an edge and noise."""
    noise = random.Random(7)
    image = Image.new("RGB", (37, 23))
    for y in range(23):
        for x in range(37):
            edge = 80 if x > 20 and y > 8 else 0
            image.putpixel((x, y), (min(255, 5 * x + noise.randrange(30)), min(255, 9 * y + edge),
                                    255 - 6 * x + noise.randrange(20)))
    return image


def brought_to(image, height, width):
    if height * image.width >= width * image.height:
        scaled = (height * image.width // image.height, height)
    else:
        scaled = (width, width * image.height // image.width)
    if image.size != scaled:
        image = image.resize(scaled, Image.Resampling.BILINEAR)
    top, left = int(round((scaled[1] - height) / 2.0)), int(round((scaled[0] - width) / 2.0))
    return image.crop((left, top, left + width, top + height))


def crc(image):
    return zlib.crc32(image.tobytes())


image = drawn()
opacity = image.getchannel("G").point(lambda value: 255 - value)
image.save(FOLDER / "colour.jpg", quality=90)
image.save(FOLDER / "scans.jpg", quality=75, progressive=True)
image.convert("L").save(FOLDER / "bright.jpg", quality=90)
image.convert("CMYK").save(FOLDER / "inks.jpg", quality=90)
image.save(FOLDER / "colour.png")
image.convert("L").save(FOLDER / "bright.png")
image.quantize(16).save(FOLDER / "palette.png")
Image.merge("RGBA", [*image.split(), opacity]).save(FOLDER / "opacity.png")

expected = {}
for file in sorted([*FOLDER.glob("*.jpg"), *FOLDER.glob("*.png")]):
    with Image.open(file) as opened:
        colour, bright = opened.convert("RGB"), opened.convert("L")
    expected[file.name] = {"height": colour.height, "width": colour.width, "colour": crc(colour),
                           "bright": crc(bright if opened.mode != "CMYK" else colour.convert("L")),
                           "sizes": [[*size, crc(brought_to(colour, *size))] for size in SIZES]}
(FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
