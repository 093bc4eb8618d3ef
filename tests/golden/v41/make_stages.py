"""Every stage of the reference with stored formats, for tests that feed each stage.

make_stages.py OUT.safetensors; reads tiny/, 24 tokens in mode kvq. Needs numpy and ml_dtypes.
"""
import os
import sys

import numpy as np

from convert import write
from ref_v41 import Model, State

TOKENS = 24


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    model = Model(os.path.join(here, "tiny"), kv_quant=True)
    config = model.cfg
    ids = np.random.default_rng(7).integers(3, 490, TOKENS)
    state, record = State(config), {}
    model.forward(ids, state, rec=record)
    record = {name: np.asarray(values) for name, values in record.items()
              if not name.startswith("engram")}
    for layer in config.kv_src:
        record[f"main_kv.{layer}"] = np.stack(state.main[layer])
        record[f"index_k.{layer}"] = np.stack(state.idx[layer])
    for layer in range(config.L):
        record[f"swa_kv.{layer}"] = np.stack([state.swa[layer][p] for p in range(TOKENS)])
    record["ids"] = ids.astype(np.int32)
    write(sys.argv[1], record)


main()
