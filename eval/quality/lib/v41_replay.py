"""The measuring half of v41_replay.sh, which says what it is for.

Of each run of `plumb model logits` only the last row is read, the one that the first answer token
is drawn from.
"""
import argparse
import array
import concurrent.futures
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = "v41-mini"
BACKTRACK_ROWS = 6  # model/load.h, kBacktrackRows
MODES = ("f32", "kvq")
TOKENS_MIN = 160
PROMPTS_DEFAULT = 60
RUNS_AT_ONCE = 2
SECONDS_MAX = 120
OWN = ("kind", "prompt_sha256", "answer")
COLUMNS = ["numerics", "rows", "prompts", "mean_error", "max_error", "mean_kl", "max_kl",
           "top1_agreement", "bits_equal", "reference_mean_error", "reference_mean_kl"]


def plumb(*words):
    return subprocess.run([os.environ["PLUMB"], *map(str, words)], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=SECONDS_MAX, check=False)


def prompt_ids(problem):
    asked = {name: value for name, value in problem.items() if name not in OWN}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"model": MODEL, **asked}, file)
        file.flush()
        done = plumb("model", "prompt", "--model", MODEL, "--request", file.name)
    return json.loads(done.stdout)["ids"]


def last_row(ids, mode, rows, folder):
    """The logits of the last position, f32; None when the rows are refused."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        Path(own, "ids").write_text(json.dumps(ids), encoding="utf-8")
        done = plumb("model", "logits", "--model", MODEL, "--ids", f"{own}/ids", "--numerics", mode,
                     "--replay", rows, "--threads", 1, "--out", f"{own}/out.npy")
        if done.returncode != 0:
            return None
        raw = Path(own, "out.npy").read_bytes()
    head = 10 + int.from_bytes(raw[8:10], "little")
    vocabulary = int(raw[10:head].split(b"), ")[0].rsplit(b" ", 1)[1])
    row = array.array("f")
    row.frombytes(raw[-4 * vocabulary:])
    return row


def log_shares(logits):
    largest = max(logits)
    total = math.log(math.fsum(math.exp(x - largest) for x in logits))
    return [x - largest - total for x in logits]


def compare(whole, ours):
    """(largest logit error by the largest logit, KL in nat, same first choice, same bits)"""
    error = max(abs(a - b) for a, b in zip(whole, ours)) / max(abs(x) for x in whole)
    p, q = log_shares(whole), log_shares(ours)
    kl = math.fsum(math.exp(a) * (a - b) for a, b in zip(p, q))
    first = max(range(len(whole)), key=whole.__getitem__)
    same = ours[first] == max(ours)
    return error, max(kl, 0.0), same, whole == ours


def measure(mode, rows, prompts, whole, pool, folder):
    found = list(pool.map(lambda ids: last_row(ids, mode, rows, folder), prompts))
    if None in found:
        sys.exit(f"v41_replay: --replay {rows} is refused")
    results = list(pool.map(compare, whole, found))
    count = len(results)
    return [mode, rows, count, sum(r[0] for r in results) / count, max(r[0] for r in results),
            sum(r[1] for r in results) / count, max(r[1] for r in results),
            sum(r[2] for r in results) / count, all(r[3] for r in results)]


def sizes(trained):
    """(window, rows from which nothing is missing)"""
    text = json.loads((trained / "ckpt" / "config.json").read_text(encoding="utf-8"))["text_config"]
    ratios = text["compress_ratios"][:text["num_hidden_layers"]]
    window = text["sliding_window"]
    return window, (len(ratios) - ratios.index(1)) * (window - 1) + 1


def table(options, folder):
    trained = Path(options.trained)
    window, complete = sizes(trained)
    lines = (trained / "problems.jsonl").read_text(encoding="utf-8").splitlines()
    reference = json.loads((trained / "results.json").read_text(encoding="utf-8"))["decoder_replay"]
    rows_of_k = sorted({window + 6, window + 12, 48, 64, 96, complete - 1, complete, 140, 200})
    out = []
    with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
        prompts = pool.map(prompt_ids, [json.loads(line) for line in lines])
        prompts = [ids for ids in prompts if len(ids) >= TOKENS_MIN][:options.prompts]
        for mode in MODES:
            if last_row(prompts[0], mode, window + BACKTRACK_ROWS - 1, folder) is not None:
                sys.exit("v41_replay: fewer rows than window and backtracking are not refused")
            whole = list(pool.map(lambda ids, m=mode: last_row(ids, m, "off", folder), prompts))
            for rows in rows_of_k:
                row = measure(mode, rows, prompts, whole, pool, folder)
                theirs = reference.get(str(rows), {}) if mode == "f32" else {}
                out.append(row + [theirs.get("mean_rel", ""), theirs.get("mean_kl", "")])
                print(" ".join(f"{value:.2e}" if isinstance(value, float) else str(value)
                               for value in out[-1]), flush=True)
    return out, complete


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit", required=True)
    parser.add_argument("--trained", required=True)
    parser.add_argument("--prompts", type=int, default=PROMPTS_DEFAULT)
    parser.add_argument("--csv")
    options = parser.parse_args()
    print(*COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        rows, complete = table(options, folder)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            file.write(f"# model: {MODEL}\n# commit: {options.commit}\n"
                       f"# prompts: {TOKENS_MIN} tokens or more\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for row in rows:
                writer.writerow([f"{v:.3e}" if isinstance(v, float) else v for v in row])
    wrong = [row[1] for row in rows if row[1] >= complete and not row[8]]
    if wrong:
        sys.exit(f"v41_replay: {wrong} rows reach every row and give other logits")


if __name__ == "__main__":
    main()
