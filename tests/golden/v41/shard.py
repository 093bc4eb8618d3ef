#!/usr/bin/env python3
"""Rewrites a checkpoint of one model.safetensors as shards of a few megabytes and their index.

  shard.py SOURCE DESTINATION SHARDS

Tensors keep their order of names in the index, their type, shape and bytes; nothing but the files'
boundaries changes. The released checkpoint is sharded too, so tests read it the way it comes.
"""

import json
import struct
import sys
from pathlib import Path


def read(path):
    """Every tensor of a safetensors file: {name: (dtype, shape, bytes)}."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
    return tensors


def write(path, tensors):
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        end = offset + len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    source, destination, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    index = json.loads((source / "model.safetensors.index.json").read_text())
    tensors = read(source / "model.safetensors")
    total = sum(len(data) for _, _, data in tensors.values())
    shards, filled = [{} for _ in range(count)], 0
    for name in index["weight_map"]:
        shards[filled * count // total][name] = tensors[name]
        filled += len(tensors[name][2])
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{count:05}.safetensors"
        write(destination / file, shard)
        index["weight_map"].update(dict.fromkeys(shard, file))
    (destination / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


main()
