# SPDX-License-Identifier: Apache-2.0
"""Figures of the archives in build/images (scripts/images.sh measure): size, start, memory at rest.

    tests/images/measure.py ARCHITECTURE
"""
import os
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "images"), str(ROOT / "tests/support")]
from definitions_test import NAMES  # noqa: E402
from images_test import AIMS, Images  # noqa: E402


def main(architecture):
    folder = tempfile.mkdtemp(prefix="ldnn-images-", dir="/tmp")
    os.chmod(folder, 0o755)
    built = Images(folder, architecture)
    try:
        print(f"{'IMAGE':<10} {'COMPRESSED':>16} {'START TO /readyz':>22} {'AT REST':>18}")
        for name in NAMES:
            seconds, resident_mb = built.measure(name, 7)
            aims = AIMS[name]
            at_rest = f"(aim {aims[2]})" if aims[2] else ""
            print(f"{name:<10} {built.images[name].compressed_bytes / 1e6:>6.1f} MB "
                  f"(aim {aims[0]:>3}) {seconds:>8.3f} s (aim {aims[1]}) "
                  f"{resident_mb:>7.1f} MB {at_rest}", flush=True)
    finally:
        built.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1])
