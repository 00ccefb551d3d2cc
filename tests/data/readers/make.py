# SPDX-License-Identifier: Apache-2.0
"""Writes the NumPy files beside this script, as users' own NumPy writes them.

Run with any Python that has NumPy: python3 tests/data/readers/make.py
"""
import pathlib

import numpy

FOLDER = pathlib.Path(__file__).parent

x = (numpy.arange(5 * 2 * 3) * 7 % 256).astype("uint8").reshape(5, 2, 3)
y = numpy.array([0, 1, 2, 1, 0])
x_test = x[:2] + 1
y_test = y[:2]

numpy.savez(FOLDER / "stored.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
numpy.savez_compressed(FOLDER / "deflated.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
numpy.savez(FOLDER / "objects.npz", x=numpy.array([{}, {}], dtype=object), y=y[:2])
for dtype in ("float32", "float64", "int16", "int32", "int64", "int8"):
    numpy.save(FOLDER / f"x_{dtype}.npy", x.astype("int8").astype(dtype).reshape(5, 6))
numpy.save(FOLDER / "x_fortran.npy", numpy.asfortranarray(x.astype("float32").reshape(5, 6)))
numpy.save(FOLDER / "x_bigendian.npy", x.astype(">f4").reshape(5, 6))
numpy.save(FOLDER / "y.npy", y)
numpy.save(FOLDER / "targets.npy", numpy.linspace(0, 1, 10, dtype="float64").reshape(5, 2))
