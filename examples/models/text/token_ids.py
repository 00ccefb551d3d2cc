# SPDX-License-Identifier: Apache-2.0
"""Texts as token ids, for the network `textcnn` (docs/models.md).

    python3 token_ids.py train.tsv test.tsv     # lines of LABEL<tab>TEXT
    lambdadnn run job.yaml

Writes texts/train.npz and texts/test.npz, and texts/vocabulary.json: the words of the training texts by id, the most
frequent ones first. Id 0 fills short texts up, id 1 is any other word.
"""
import argparse
import collections
import json
import pathlib

import numpy

FILL, OTHER = 0, 1


def read(path):
    lines = [line.split("\t", 1) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line]
    return [int(label) for label, _ in lines], [text.lower().split() for _, text in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--length", type=int, default=32, help="ids of a text; what is longer is cut")
    parser.add_argument("--vocabulary", type=int, default=1000, help="ids in all, as in job.yaml")
    arguments = parser.parse_args()
    labels, texts = read(arguments.train)
    count = collections.Counter(word for text in texts for word in text)
    words = [word for word, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))]
    ids = {word: number for number, word in enumerate(words[:arguments.vocabulary - 2], OTHER + 1)}
    folder = pathlib.Path("texts")
    folder.mkdir(exist_ok=True)
    (folder / "vocabulary.json").write_text(json.dumps(ids))
    for name, (of_labels, of_texts) in (("train", (labels, texts)), ("test", read(arguments.test))):
        x = numpy.full((len(of_texts), arguments.length), FILL, dtype="<i4")
        for row, text in zip(x, of_texts, strict=True):
            known = [ids.get(word, OTHER) for word in text[:arguments.length]]
            row[:len(known)] = known
        numpy.savez(folder / f"{name}.npz", x=x, y=numpy.array(of_labels, dtype="<i8"))


if __name__ == "__main__":
    main()
