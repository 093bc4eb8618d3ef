#!/usr/bin/env python3
"""eval/speed/lib/plain_template.py
Copies a GGUF file with another chat template: the content of the first message and nothing else.
Then a chat request of N words of one token each is a prompt of N tokens, for every server, so that
prompt lengths can be exact. plain_template.py FROM TO
"""
import os
import shutil
import struct
import sys
from pathlib import Path

TEMPLATE = "{{ messages[0]['content'] }}"
KEY = b"tokenizer.chat_template"
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, ARRAY = 8, 9


class Reader:
    """Walks the head of a GGUF file; values are kept as the bytes they are."""

    def __init__(self, file):
        self.file = file

    def take(self, size):
        data = self.file.read(size)
        if len(data) != size:
            raise ValueError("the file ends within its head")
        return data

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self):
        return self.take(self.number("<Q"))

    def value(self, kind):
        start = self.file.tell()
        if kind == TEXT:
            self.text()
        elif kind == ARRAY:
            element, count = self.number("<I"), self.number("<Q")
            if element == TEXT:
                for _ in range(count):
                    self.text()
            else:
                self.take(SIZES[element] * count)
        else:
            self.take(SIZES[kind])
        end = self.file.tell()
        self.file.seek(start)
        return self.take(end - start)


def packed_text(text):
    return struct.pack("<Q", len(text)) + text


def rewrite(source, target):
    with open(source, "rb") as file:
        reader = Reader(file)
        magic, version = reader.take(4), reader.number("<I")
        if magic != b"GGUF" or version < 2:
            raise ValueError("not a GGUF file of version 2 or 3")
        tensors, keys = reader.number("<Q"), reader.number("<Q")
        pairs, alignment = [], 32
        for _ in range(keys):
            key, kind = reader.text(), reader.number("<I")
            value = reader.value(kind)
            if key == b"general.alignment":
                alignment = struct.unpack("<I", value)[0]
            if not key.startswith(KEY):
                pairs.append((key, kind, value))
        pairs.append((KEY, TEXT, packed_text(TEMPLATE.encode())))
        directory = b""
        for _ in range(tensors):
            name, dims = reader.text(), reader.number("<I")
            directory += packed_text(name) + struct.pack("<I", dims) + reader.take(8 * dims + 12)
        file.seek(-file.tell() % alignment, os.SEEK_CUR)
        with open(target, "wb") as out:
            out.write(magic + struct.pack("<IQQ", version, tensors, len(pairs)))
            for key, kind, value in pairs:
                out.write(packed_text(key) + struct.pack("<I", kind) + value)
            out.write(directory)
            out.write(b"\0" * (-out.tell() % alignment))
            shutil.copyfileobj(file, out, 1 << 24)


def plain(source):
    """The path of the copy, which is made once and kept."""
    target = os.path.join(os.environ["SPEED_CACHE"], "speed", f"{Path(source).stem}.plain.gguf")
    if not os.path.exists(target):
        temporary = f"{target}.tmp"
        rewrite(source, temporary)
        os.replace(temporary, target)
    return target


if __name__ == "__main__":
    rewrite(sys.argv[1], sys.argv[2])
