"""eval/speed/lib/one_core_busy.py
How much of its decode speed plumb keeps when another process computes on one core all the time: no
thread of ours may spin or wait for one that is not running. Called by one_core_busy.sh.
"""
import argparse
import contextlib
import os
import signal
import subprocess
import sys

from speed import Samples, add_common_options, csv_path, describe, plumb_bench

GOAL = 0.45
# Ends by itself when process $1 is gone, whatever ended that.
LOOP = ["bash", "-c", 'while kill -0 "$1"; do for _ in {1..100000}; do :; done; done', "loop"]


@contextlib.contextmanager
def busy_core(core):
    """A process that never sleeps, bound to the core; it dies with us."""
    loop = subprocess.Popen(["taskset", "-c", str(core), *LOOP, str(os.getpid())],
                            stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="one_core_busy.sh")
    add_common_options(parser)
    arguments = parser.parse_args()
    model = os.environ["SMOLLM2_GGUF"]
    about = describe(model, arguments.threads)
    samples = Samples(csv_path(arguments, about, "one-core-busy"), about)
    core = max(os.sched_getaffinity(0))
    options = ["--prompt", 16, "--context", 256, "--batch", 1,
               "--decode", 16 if arguments.quick else 64, "--repeat", 3]
    for number in range(1 if arguments.quick else arguments.rounds):
        for what in ("quiet", "busy"):
            with busy_core(core) if what == "busy" else contextlib.nullcontext():
                bench = plumb_bench(model, arguments.threads, options)
            for point in (bench or {}).get("points", []):
                if point["kind"] != "decode":
                    continue
                for seconds in point["seconds"]:
                    samples.add(f"decode-{what}", "plumb", number, point["tokens"] / seconds,
                                "tokens/s")
    quiet, busy = (samples.median(f"decode-{what}", "plumb") for what in ("quiet", "busy"))
    if not quiet or not busy:
        samples.ratio("decode-one-core-busy", None, GOAL, "not measured")
        return 1
    samples.ratio("decode-one-core-busy", busy / quiet, GOAL,
                  f"quiet {quiet:.1f}, busy {busy:.1f} tokens/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
