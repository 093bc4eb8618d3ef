"""eval/speed/lib/gateway.py
Requests a second through everything but a model, latencies at half of the goals, and the memory of
silent streams. The server has one core and the load generator another, so a rate is that of one
core; beside it stands the rate per second that the server computed, which a busy machine does not
change. Called by gateway.sh.
"""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from speed import Samples, add_common_options, csv_path, describe, say

STREAMS = 5000
LATENCY_MS = 3
MEMORY_MB = 200
# What is asked, at least how often a second, over how many connections.
KINDS = {"short": (5000, 32), "stream": (0, 32), "turns": (300, 8), "cold": (5, 2)}
LATENCIES = ("short", "turns")  # of these, at half of that rate
WARM_UP = 1  # second, of latencies
SECONDS_MAX = 120
FIRST = ("chrt", "--fifo", "50")  # before every ordinary process of the machine
TICKS = os.sysconf("SC_CLK_TCK")


class Gateway:
    """gateway_server on one core. A context; it ends when its input does."""

    def __init__(self, core, *options, prefix=()):
        command = [*prefix, "taskset", "-c", core,
                   Path(os.environ["GATEWAY_BIN"]) / "gateway_server",
                   "--model", os.environ["SMOLLM2_GGUF"], *options]
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("http://"):
            raise RuntimeError("gateway_server did not start")
        self.port = line.rstrip("/\n").rsplit(":", 1)[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
        self.process.kill()
        self.process.wait()

    def cpu_seconds(self):
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / TICKS

    def waited_ms(self):
        """How long its threads were ready for their core while others had it."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="ascii").split()[1]) for task in tasks) / 1e6

    def resident_mb(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("gateway_server is gone")


def load_command(core, gateway, kind, connections, *options):
    root = Path(os.environ["GATEWAY_TEXTS"])
    texts = sorted(root.glob("docs/*.md")) + sorted(root.glob("src/*/*.cc"))
    command = ["taskset", "-c", core, Path(os.environ["GATEWAY_BIN"]) / "gateway_load",
               "--port", gateway.port, "--kind", kind, "--connections", connections, *options]
    for text in texts:
        command += ["--text", text]
    return [str(word) for word in command]


def load(*arguments, prefix=()):
    """What gateway_load reports; any answer but a 200 ends the measurement."""
    done = subprocess.run([*prefix, *load_command(*arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or "gateway_load failed")
    return json.loads(done.stdout)


def measure_rate(samples, cores, kind, number, seconds):
    with Gateway(cores[0]) as gateway:
        connections = KINDS[kind][1]
        load(cores[1], gateway, kind, connections, "--seconds", seconds / 4, "--warm-up", 0)
        before = gateway.cpu_seconds()
        report = load(cores[1], gateway, kind, connections, "--seconds", seconds, "--warm-up", 0)
        computed = gateway.cpu_seconds() - before
        samples.add(f"gateway-{kind}", "plumb", number, report["requests"] / report["seconds"],
                    "requests/s")
        samples.add(f"gateway-{kind}-per-cpu", "plumb", number,
                    report["requests"] / max(computed, 1 / TICKS), "requests/cpu-s")
        samples.add(f"gateway-{kind}-memory", "plumb", number, gateway.resident_mb(), "MB")


def measure_latency(samples, cores, kind, number, seconds, ranks):
    """Among the machine's other processes, and where it may, before all of them."""
    for rank, prefix in ranks.items():
        with Gateway(cores[0], prefix=prefix) as gateway:
            rate = KINDS[kind][0] / 2
            before = gateway.waited_ms()
            report = load(cores[1], gateway, kind, KINDS[kind][1], "--seconds", seconds,
                          "--rate", rate, "--warm-up", WARM_UP, prefix=prefix)
            waited = gateway.waited_ms() - before
            for name in ("p50_ms", "p90_ms", "p99_ms", "max_ms"):
                samples.add(f"gateway-{kind}-{name[:-3]}-at-half{rank}", "plumb", number,
                            report[name], "ms")
            samples.add(f"gateway-{kind}-waited-at-half{rank}", "plumb", number,
                        waited / (WARM_UP + seconds), "ms/s")


def ranks_that_may_be():
    """Names of samples end with these; what a command begins with for each."""
    may = subprocess.run([*FIRST, "true"], capture_output=True, check=False).returncode == 0
    if not may:
        say("no right to real-time priority: latencies are those among other processes only")
    return {"": (), "-first": FIRST} if may else {"": ()}


def measure_streams(samples, cores, number):
    with Gateway(cores[0], "--silent") as gateway:
        samples.add("gateway-no-stream-memory", "plumb", number, gateway.resident_mb(), "MB")
        client = subprocess.Popen(load_command(cores[1], gateway, "stream", STREAMS, "--hold"),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if json.loads(client.stdout.readline() or "{}").get("streams") != STREAMS:
                raise RuntimeError("not all streams began")
            samples.add(f"gateway-{STREAMS}-streams-memory", "plumb", number,
                        gateway.resident_mb(), "MB")
        finally:
            client.stdin.close()
            client.wait(timeout=30)


def show_ratios(samples, only, ranks):
    """Medians over their goals, or goals over them where less is better."""
    good = True
    for kind, (goal, _) in KINDS.items():
        if kind in only and goal:
            value = samples.median(f"gateway-{kind}", "plumb")
            per_cpu = samples.median(f"gateway-{kind}-per-cpu", "plumb")
            good &= samples.ratio(f"gateway-{kind}-requests", value / goal, 1,
                                  f"{value:.0f} a second, {per_cpu:.0f} a computed second, "
                                  f"goal {goal}")
        for rank in ranks if kind in only and kind in LATENCIES else ():
            value = samples.median(f"gateway-{kind}-p99-at-half{rank}", "plumb")
            good &= samples.ratio(f"gateway-{kind}-p99-at-half{rank}", LATENCY_MS / value, 1,
                                  f"{value:.2f} ms at {goal / 2:.0f} a second")
    if "streams" in only:
        value = samples.median(f"gateway-{STREAMS}-streams-memory", "plumb")
        good &= samples.ratio(f"gateway-{STREAMS}-streams-memory", MEMORY_MB / value, 1,
                              f"{value:.0f} MB")
    return good


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="gateway.sh")
    add_common_options(parser)
    parser.add_argument("--only", default="short,stream,turns,cold,streams", metavar="NAMES")
    arguments = parser.parse_args()
    only = arguments.only.split(",")
    cores = [str(core) for core in sorted(os.sched_getaffinity(0))][:2]
    if len(cores) < 2:
        sys.exit("gateway.sh: two cores are needed, one for the server and one for its clients")
    about = describe(os.environ["SMOLLM2_GGUF"], 1)
    samples = Samples(csv_path(arguments, about, "gateway"), about)
    ranks = ranks_that_may_be()
    seconds = 1 if arguments.quick else 4
    for number in range(1 if arguments.quick else arguments.rounds):
        for kind in [kind for kind in KINDS if kind in only]:
            say(f"round {number}: {kind}")
            measure_rate(samples, cores, kind, number, seconds)
            if kind in LATENCIES:
                measure_latency(samples, cores, kind, number, seconds, ranks)
        if "streams" in only and number == 0:  # memory hardly varies, and it takes a while
            measure_streams(samples, cores, number)
    return 0 if show_ratios(samples, only, ranks) else 1


if __name__ == "__main__":
    sys.exit(main())
