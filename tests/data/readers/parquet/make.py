# SPDX-License-Identifier: Apache-2.0
"""Writes the Parquet files beside this script, and those of the fuzz corpus, as users' own pyarrow writes them.

Run with any Python that has pyarrow: python3 tests/data/readers/parquet/make.py
"""
import pathlib
import struct
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent
CORPUS = FOLDER.parents[2] / "fuzz/corpus/parquet"


def write(name, columns, folder=FOLDER, **options):
    options = {"row_group_size": 64, "compression": "snappy", **options}
    pq.write_table(pa.table(columns), folder / f"{name}.parquet", **options)


def rows(count):
    """A table; the tests know these formulas."""
    return {
        "a": pa.array([i * 0.25 - 7 for i in range(count)], pa.float64()),
        "b": pa.array([i * 37 % 101 - 50 for i in range(count)], pa.int32()),
        "label": pa.array([i % 3 for i in range(count)], pa.int64()),
        "c": pa.array([1 / (i + 1) for i in range(count)], pa.float32()),
        "d": pa.array([i % 2 == 0 for i in range(count)], pa.bool_())}


def vectors(count, width=8):
    return {"pixels": pa.array([[(i * width + j) * 7 % 256 / 4 for j in range(width)] for i in range(count)],
                               pa.list_(pa.float32(), width)),
            "y": pa.array([i * 5 % 4 for i in range(count)], pa.int8())}


def byte_lists(count, width=16):
    return {"pixels": pa.array([[(i * width + j) * 7 % 256 for j in range(width)] for i in range(count)],
                               pa.list_(pa.uint8())),
            "digit": pa.array([i % 10 for i in range(count)], pa.uint8())}


def png(value, side=4):
    """Grey, of one value."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = zlib.compress((b"\0" + bytes([value]) * side) * side)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def images(bad=None):
    """As Hugging Face's data sets store them; `bad`: {number: what is there instead}."""
    stored = [{"bytes": png(10 * i), "path": f"{i}.png"} for i in range(9)]
    for i, instead in (bad or {}).items():
        stored[i] = instead
    return {"image": pa.array(stored, IMAGE), "label": pa.array(range(9), pa.int64()),
            "caption": pa.array([f"grey {i}" for i in range(9)])}


def every_type():
    return {
        **{f"{kind}": pa.array([0, 1], getattr(pa, kind)())
           for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                        "float32", "float64")},
        "bool": pa.array([True, False]),
        "list": pa.array([[1, 2], [3, 4]], pa.list_(pa.int16())),
        "fixed_list": pa.array([[1, 2], [3, 4]], pa.list_(pa.float64(), 2)),
        "large_list": pa.array([[1, 2], [3, 4]], pa.large_list(pa.uint8())),
        "image": pa.array([{"bytes": b"x", "path": None}] * 2, IMAGE),
        "binary": pa.array([b"x", b"y"], pa.binary()),
        "half": pa.array([0.5, 1.5], pa.float16()),
        "string": pa.array(["x", "y"]),
        "category": pa.array(["x", "y"]).dictionary_encode(),
        "date": pa.array([1, 2], pa.date32()),
        "time": pa.array([1, 2], pa.timestamp("ms")),
        "decimal": pa.array([1, 2], pa.decimal128(9, 2)),
        "fixed_binary": pa.array([b"xx", b"yy"], pa.binary(2)),
        "nested": pa.array([[[1]], [[2]]], pa.list_(pa.list_(pa.int32()))),
        "struct": pa.array([{"x": 1, "y": 2}] * 2),
        "struct_of_list": pa.array([{"x": [1]}] * 2),
        "map": pa.array([[(1, 2)], [(3, 4)]], pa.map_(pa.int32(), pa.int32())),
        "structs": pa.array([[{"x": 1, "y": 2}]] * 2)}


def main():
    write("rows", rows(300))
    write("vectors", vectors(120), row_group_size=50, compression="zstd", data_page_size=200, use_dictionary=False,
          column_encoding={"pixels.list.element": "BYTE_STREAM_SPLIT", "y": "PLAIN"}, data_page_version="2.0")
    write("byte_lists", byte_lists(100), compression="gzip")
    write("images", images(), row_group_size=4)
    cut, missing = {"bytes": png(40)[:45], "path": None}, {"bytes": None, "path": "x.png"}
    write("bad_images", images({1: None, 4: cut, 5: missing}), row_group_size=4)
    write("binary", {"label": pa.array([1, 0]), "jpg": pa.array([png(30), png(60)], pa.binary())})
    write("types", every_type())
    # The largest and least numbers of each type that float32 has.
    write("extremes", {"u32": pa.array([4294967295, 0], pa.uint32()), "u64": pa.array([2**64 - 1, 2**63], pa.uint64()),
                       "i64": pa.array([-2**63, 2**63 - 1], pa.int64()), "i8": pa.array([-128, 127], pa.int8()),
                       "label": pa.array([0, 1], pa.int8())}, compression="none")
    # Pages without statistics: the labels themselves are looked at.
    write("plain_labels", rows(300), write_statistics=False)
    write("one_label_too_large", {"x": pa.array([float(i) for i in range(100)]),
                                  "label": pa.array([7 if i == 70 else i % 3 for i in range(100)])})
    write("targets", {"x": pa.array([float(i) for i in range(6)]),
                      "y": pa.array([[i / 2, -i] for i in range(6)], pa.list_(pa.float32()))})
    broken = {
        "null_number": {"x": pa.array([None if i == 66 else i / 2 for i in range(100)], pa.float64())},
        "null_label": {"x": pa.array([0.5] * 100), "label": pa.array([None if i == 99 else 1 for i in range(100)])},
        "null_element": {"x": pa.array([[1, None if i == 3 else 2] for i in range(100)], pa.list_(pa.int32()))},
        "null_list": {"x": pa.array([None if i == 2 else [i] for i in range(100)], pa.list_(pa.int32()))},
        "empty_list": {"x": pa.array([[] if i == 2 else [i] for i in range(100)], pa.list_(pa.int32()))},
        "uneven_lists": {"x": pa.array([[1, 2, 3] if i == 3 else [1] if i == 65 else [1, 2] for i in range(100)],
                                       pa.list_(pa.int32()))},
        # As many in all as if each had two.
        "lists_that_make_up": {"x": pa.array([[1, 2, 3] if i == 3 else [1] if i == 5 else [1, 2] for i in range(100)],
                                             pa.list_(pa.int32()))},
        "nan": {"x": pa.array([float("nan") if i == 70 else 1.0 for i in range(100)])},
        "too_large": {"x": pa.array([1e300 if i == 70 else 1.0 for i in range(100)])},
        "pandas_index": {"__index_level_0__": pa.array(range(100)), "x": pa.array([1.0] * 100)},
        "one_column": {}}
    for name, columns in broken.items():
        write(name, {**columns, **({} if "label" in columns else {"label": pa.array([i % 2 for i in range(100)])})})
    # Small pages, and an index of them.
    write("paged", {**vectors(600, 3), "n": pa.array([i * 0.25 - 7 for i in range(600)]),
                    "text": pa.array([b"x" * (i % 13) + str(i).encode() for i in range(600)], pa.binary())},
          row_group_size=400, write_page_index=True, data_page_size=200, write_batch_size=16,
          use_dictionary=["y"])
    write("streamed", rows(40), row_group_size=7)
    write("streamed_test", rows(12), row_group_size=5)
    write("no_rows", {"x": pa.array([], pa.float64()), "label": pa.array([], pa.int64())})
    # A page of 300 million bytes, which takes a few thousand in the file.
    write("bomb", {"image": pa.array([bytes(300_000_000)], pa.binary()), "label": pa.array([0])}, compression="zstd",
          compression_level=19, use_dictionary=False, write_statistics=False)

    CORPUS.mkdir(exist_ok=True)
    write("rows", rows(5), CORPUS, row_group_size=3)
    write("plain_rows", rows(3), CORPUS, compression="none", use_dictionary=False, data_page_version="2.0")
    write("vectors", vectors(4, 3), CORPUS, row_group_size=3, compression="zstd")
    write("byte_lists", byte_lists(4, 3), CORPUS, compression="gzip")
    two = {name: column.slice(0, 2) for name, column in images().items() if name != "caption"}
    write("images", two, CORPUS, compression="lz4", use_dictionary=False)
    write("null", {"x": pa.array([1, None]), "y": pa.array([0, 1])}, CORPUS, compression="none")


if __name__ == "__main__":
    main()
