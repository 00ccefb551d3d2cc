# SPDX-License-Identifier: Apache-2.0
"""Exports the UCI handwritten digits that scikit-learn carries: 1,797 images of 8 x 8, 0 to 16.

usage: /usr/bin/python3 real_digits.py FOLDER

Writes train.csv and test.csv (columns p0 to p63 and digit), and x_train.npy, y_train.npy,
x_test.npy, y_test.npy ([n, 8, 8] float32). Every fifth sample, after a fixed shuffle, is held out.
"""
import pathlib
import sys

import numpy
import sklearn.datasets


def export(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    digits = sklearn.datasets.load_digits()
    order = numpy.random.RandomState(0).permutation(len(digits.target))
    pixels, labels = digits.data[order].astype("float32"), digits.target[order]
    held_out = numpy.arange(len(labels)) % 5 == 0
    for name, chosen in (("train", ~held_out), ("test", held_out)):
        header = ",".join([f"p{i}" for i in range(64)] + ["digit"])
        rows = numpy.column_stack([pixels[chosen], labels[chosen]])
        numpy.savetxt(folder / f"{name}.csv", rows, "%g", ",", header=header, comments="")
        numpy.save(folder / f"x_{name}.npy", pixels[chosen].reshape(-1, 8, 8))
        numpy.save(folder / f"y_{name}.npy", labels[chosen])


if __name__ == "__main__":
    export(sys.argv[1])
