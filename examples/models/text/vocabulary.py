# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of texts for `spec.dataset.text` (docs/data.md): the most frequent tokens, one a line.

    python3 vocabulary.py texts/train.txt > texts/vocab.txt     # lines of __label__CLASS TEXT
    lambdadnn run job.yaml

Tokens are those of the tokenizer BasicEnglish. <pad> fills short texts up, <unk> is any other token.
"""
import argparse
import collections
import pathlib
import re

TOKEN = re.compile(r"[.,()!?']|[^\s.,()!?';:]+")


def tokens(line):
    _, text = line.split(maxsplit=1)
    return TOKEN.findall(text.lower().replace('"', "").replace("<br />", " "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("--size", type=int, default=1000, help="tokens in all")
    arguments = parser.parse_args()
    lines = pathlib.Path(arguments.train).read_text(encoding="utf-8").splitlines()
    count = collections.Counter(token for line in lines if line.strip() for token in tokens(line))
    known = [token for token, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))]
    print("\n".join(["<pad>", "<unk>"] + known[:arguments.size - 2]))


if __name__ == "__main__":
    main()
