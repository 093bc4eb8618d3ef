"""The measuring half of kl_guard.sh, which says what it is for and sets the environment.

Both engines judge the same ids (compared by SHA-256), each against its own run of the F32 file, so
that only the arithmetic of the quantised products differs. Fails when a ratio is above its goal.
"""
import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llamacpp import requantised
from speed import file_line

GOAL = 1.1
POSITIONS_MIN = 5000
CONTEXT = 512
WINDOWS_DEFAULT = 20  # 5,100 positions
SECONDS_MAX = 4 * 3600
# Which variable names the file, and the kind that is made of it; empty: the file itself.
MODELS = {"smollm2-135m_q4_1": ("SMOLLM2_GGUF", ""), "smollm2-135m_q8_0": ("SMOLLM2_GGUF", "Q8_0"),
          "smollm2-135m_q4_0": ("SMOLLM2_GGUF", "Q4_0"),
          "smollm2-135m_bf16": ("SMOLLM2_GGUF", "BF16"),
          "qwen2.5-coder-0.5b_q4_k_m": ("QWEN_05B_GGUF", "")}
COLUMNS = ["model", "engine", "positions", "perplexity", "perplexity_f32", "kl_mean", "kl_p99",
           "kl_largest", "top1_agreement"]


def say(text):
    print(f"plumb: {text}", file=sys.stderr, flush=True)


def run(command):
    """Standard output; what the command says meanwhile goes to standard error."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        sys.exit(f"kl_guard: {Path(str(command[0])).name} failed ({done.returncode})")
    return done.stdout


def file_of(name):
    """The model's file. One that is made holds other weights than its source, which changes nothing
    here: it is held against those same weights as F32."""
    variable, kind = MODELS[name]
    path = Path(os.environ[variable])
    made = requantised(path, kind) if kind else path
    if made is None:
        sys.exit(f"kl_guard: {name} could not be made of {path.name}")
    return made


def f32_of(model):
    """The model's weights as F32, made once; the name holds what it was made of."""
    stat = os.stat(model)
    key = hashlib.sha256(f"{model.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode())
    folder = Path(os.environ["SPEED_CACHE"]) / "quality"
    path = folder / f"{model.stem}.{key.hexdigest()[:12]}.f32.gguf"
    if not path.exists():
        run([os.environ["PLUMB"], "model", "quantize", "--model", model, "--type", "F32",
             "--output", path])
    return path


def measure_plumb(model, reference, text, options):
    out = json.loads(run([os.environ["PLUMB"], "model", "perplexity", "--model", model,
                          "--reference", reference, "--text", text, "--context", CONTEXT,
                          "--windows", options.windows, "--threads", options.threads, "--json"]))
    return out | {"perplexity_f32": out["reference"]["perplexity"]}


def measure_llamacpp(model, reference, text, options):
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder) / "ids"
        out = json.loads(run([os.environ["LLAMACPP_KL"], model, reference, text, CONTEXT,
                              options.windows, options.threads, ids]))
        digest = hashlib.sha256(ids.read_bytes()).hexdigest()
    return out | {"tokens_sha256": digest, "perplexity_f32": out["reference_perplexity"]}


def guard(name, model, text, options):
    """(ratio, rows for the CSV)"""
    reference = f32_of(model)
    engines = {}
    for engine, measure in (("plumb", measure_plumb), ("llama.cpp", measure_llamacpp)):
        say(f"{name}: {engine}")
        engines[engine] = measure(model, reference, text, options)
    ours, theirs = engines["plumb"], engines["llama.cpp"]
    for key in ("tokens_sha256", "positions"):
        if ours[key] != theirs[key]:
            sys.exit(f"kl_guard: {name}: the engines differ in {key}")
    if ours["positions"] < POSITIONS_MIN:
        say(f"{name}: only {ours['positions']} positions; a claim needs {POSITIONS_MIN}")
    rows = [[name, engine, out["positions"], f"{out['perplexity']:.6f}",
             f"{out['perplexity_f32']:.6f}"] +
            [f"{out['kl'][key]:.6e}" for key in ("mean", "p99", "largest")] +
            [f"{out['kl']['top1_agreement']:.6f}"] for engine, out in engines.items()]
    for row in rows:
        say("  " + ", ".join(f"{column} {value}" for column, value in zip(COLUMNS[1:], row[1:])))
    return ours["kl"]["mean"] / theirs["kl"]["mean"], rows, ours["numerics_id"]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--windows", type=int, default=WINDOWS_DEFAULT)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--csv", default="")
    options = parser.parse_args()
    names = options.models.split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        parser.error(f"no model {unknown[0]}; there are {', '.join(MODELS)}")

    text = options.root / "eval/quality/data/opticks.txt"
    rows, ratios, numerics = [], {}, "unknown"
    files = {name: file_of(name) for name in names}
    for name in names:
        ratios[name], more, numerics = guard(name, files[name], text, options)
        rows += more
        print(f"RATIO kl_{name} {ratios[name]:.4g} {GOAL}", flush=True)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    path = Path(options.csv or options.root / f"eval/quality/results/{day}-kl_guard.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        for key, value in (("cpu", processor()), ("threads", options.threads),
                           ("commit", os.environ["PLUMB_SPEED_COMMIT"]), ("numerics", numerics),
                           ("context", CONTEXT), ("windows", options.windows),
                           *((f"model {name}", file_line(files[name])) for name in names)):
            file.write(f"# {key}: {value}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
        for name, ratio in ratios.items():
            file.write(f"# RATIO kl_{name} {ratio:.4g} {GOAL}\n")
    return 0 if all(ratio <= GOAL for ratio in ratios.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
