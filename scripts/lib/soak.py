"""The load of soak.sh, and its judgement.

First a closed loop finds what the server can serve; then requests come at twice that rate, whatever
becomes of those before. Standard library only.
"""

import argparse
import collections
import csv
import http.client
import json
import pathlib
import random
import socket
import statistics
import sys
import threading
import time

HOST = "127.0.0.1"
CLIENTS_MAX = 500  # at once; more are counted and not sent
DEADLINE_SECONDS = 40  # of a patient client's request
STUCK_SECONDS = DEADLINE_SECONDS + 40  # an answer that is not there by then never comes
PATIENCE_SECONDS = 6  # mean, of a client that leaves
LEAVING_SHARE = 0.4
SAMPLE_SECONDS = 5
LOAD_FACTOR = 2
RSS_GROWTH_MAX = 0.03  # of the RSS, over the judged part of the run
RSS_GROWTH_FLOOR_KIB = 16 * 1024
DRAIN_SECONDS_MAX = 20
GAUGES = ("requests_running", "requests_waiting", "pages_used", "pages_cached", "pages_total",
          "http_connections_open")
TOTALS = ("completion_tokens_total", "preemptions_total", "page_evictions_total",
          "http_disconnects_total")
QUESTIONS = 40


def question(number):
    """One of a few requests that are asked again and again; a function of its number."""
    rng = random.Random(number)
    system = ["You are terse.", "You are a poet.", "Answer in one sentence. " * 20][number % 3]
    topic = rng.choice(["rivers", "compilers", "bread", "the moon", "prime numbers", "whales"])
    body = {
        "model": "",  # filled in
        "messages": [{"role": "system", "content": system},
                     {"role": "user", "content": f"Say something new about {topic}. "
                                                 + "Think of it well. " * rng.choice([0, 3, 60])}],
        "max_tokens": rng.choice([1, 8, 32, 64, 160]),
        "temperature": rng.choice([0, 0.7, 1.0]),
        "seed": number,
        "n": rng.choice([1, 1, 1, 2, 3]),
    }
    if rng.random() < 0.3:
        body["stop"] = [rng.choice([".", "\n\n", " the"])]
    return body


class Load:
    def __init__(self, port, pid, seed):
        self.port, self.pid = port, pid
        self.seeds = random.Random(seed)
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.answers = {}  # question -> what it was answered first
        self.faults = []
        self.model = json.loads(self.get("/v1/models"))["data"][0]["id"]

    def get(self, path):
        connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise OSError(f"{path} answers {response.status}")
            return body
        finally:
            connection.close()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fault(self, text):
        with self.lock:
            self.counts["fault"] += 1
            if len(self.faults) < 20:
                self.faults.append(text)

    def client(self, leaving_share):
        """One request, from connection to end; on a thread of its own."""
        with self.lock:
            rng = random.Random(self.seeds.getrandbits(64))
        number = rng.randrange(QUESTIONS)
        body = question(number) | {"model": self.model, "stream": rng.random() < 0.6}
        leaves = rng.random() < leaving_share
        patience = rng.expovariate(1 / PATIENCE_SECONDS) if leaves else STUCK_SECONDS
        if not leaves:
            body["deadline_ms"] = DEADLINE_SECONDS * 1000
        end = time.monotonic() + patience
        connection = http.client.HTTPConnection(HOST, self.port, timeout=max(patience, 0.01))
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                self.refused(response)
            elif body["stream"]:
                self.streamed(connection, response, number, end)
            else:
                self.whole(json.loads(response.read()), number)
        except (socket.timeout, TimeoutError):
            self.count("left")
            if not leaves:
                self.fault(f"question {number}: stuck for {STUCK_SECONDS} s")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.fault(f"question {number}: {error!r}")
        finally:
            connection.close()

    def refused(self, response):
        text = response.read()
        self.count(f"status_{response.status}")
        if response.status == 503 and response.getheader("Retry-After") is None:
            self.fault("503 without Retry-After")
        if response.status not in (503, 504):
            self.fault(f"status {response.status}: {text[:200]!r}")

    def whole(self, answer, number):
        self.finished(number, {choice["index"]: (choice["message"]["content"],
                                                 choice["finish_reason"])
                               for choice in answer["choices"]})

    def streamed(self, connection, response, number, end):
        texts, reasons = collections.defaultdict(str), {}
        for line in response:
            if time.monotonic() > end:
                raise TimeoutError
            connection.sock and connection.sock.settimeout(max(end - time.monotonic(), 0.01))
            if not line.startswith(b"data: "):
                continue
            if line.startswith(b"data: [DONE]"):
                return self.finished(number, {i: (texts[i], reasons[i]) for i in reasons})
            chunk = json.loads(line[6:])
            if "error" in chunk:
                return self.broken(chunk["error"])
            for choice in chunk["choices"]:
                texts[choice["index"]] += choice["delta"].get("content") or ""
                if choice.get("finish_reason"):
                    reasons[choice["index"]] = choice["finish_reason"]
        self.fault(f"question {number}: a stream without an end")
        return None

    def broken(self, error):
        """An error after the stream had begun: only a deadline is one that may be."""
        self.count("overdue")
        if error.get("code") != "deadline_exceeded":
            self.fault(f"a stream broke: {error}")

    def finished(self, number, choices):
        self.count("ok")
        with self.lock:
            first = self.answers.setdefault(number, choices)
        if choices != first:
            self.fault(f"question {number}: answered {choices}, before {first}")


def metrics(load):
    values = {}
    for line in load.get("/metrics").decode().splitlines():
        if line.startswith("plumb_") and " " in line and "{" not in line:
            name, value = line.split(" ")[:2]
            values[name.removeprefix("plumb_")] = float(value)
    return values


def rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise OSError("no VmRSS")


def files_open(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


class Monitor:
    """A row of figures every few seconds, a line every minute."""

    def __init__(self, load, path):
        self.load, self.begin, self.rows, self.printed = load, time.monotonic(), [], 0
        self.file = open(path, "w", newline="")
        self.writer = None

    def sample(self):
        values = metrics(self.load)
        with self.load.lock:
            counts = dict(self.load.counts)
        row = {"seconds": round(time.monotonic() - self.begin, 1),
               "rss_kib": rss_kib(self.load.pid), "files": files_open(self.load.pid)}
        row |= {name: int(values.get(name, 0)) for name in GAUGES + TOTALS}
        row |= {name: counts.get(name, 0) for name in ("ok", "left", "overdue", "status_503",
                                                       "status_504", "unsent", "fault")}
        if self.writer is None:
            self.writer = csv.DictWriter(self.file, list(row))
            self.writer.writeheader()
        self.writer.writerow(row)
        self.file.flush()
        self.rows.append(row)
        if row["seconds"] // 60 > self.printed:
            self.printed = row["seconds"] // 60
            print(" ".join(f"{name}={row[name]}" for name in
                           ("seconds", "rss_kib", "requests_running", "requests_waiting",
                            "pages_used", "pages_cached", "ok", "left", "overdue", "status_503",
                            "fault")), flush=True)
        if row["pages_used"] + row["pages_cached"] > row["pages_total"]:
            self.load.fault(f"pages do not add up: {row}")
        return row


def capacity(load, monitor, sequences, seconds):
    """Requests a second that are answered when as many clients as seats wait for nothing else."""
    end = time.monotonic() + seconds

    def loop():
        while time.monotonic() < end:
            load.client(0)

    workers = [threading.Thread(target=loop, daemon=True) for _ in range(2 * sequences)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        monitor.sample()
        workers[0].join(SAMPLE_SECONDS)
        for worker in workers:
            worker.join(0)
    taken = time.monotonic() - (end - seconds)
    return max(load.counts["ok"] / taken, 0.05)


def overload(load, monitor, rate, seconds):
    """Requests at random moments, `rate` a second, each on a thread; joined at the end."""
    gaps = random.Random(7)
    clients, end = [], time.monotonic() + seconds
    next_arrival = next_sample = time.monotonic()
    while (now := time.monotonic()) < end:
        if now >= next_sample:
            monitor.sample()
            next_sample = now + SAMPLE_SECONDS
        if now >= next_arrival:
            next_arrival += gaps.expovariate(rate)
            clients = [client for client in clients if client.is_alive()]
            if len(clients) >= CLIENTS_MAX:
                load.count("unsent")
                continue
            clients.append(threading.Thread(target=load.client, args=(LEAVING_SHARE,), daemon=True))
            clients[-1].start()
            continue
        time.sleep(max(0.0, min(next_arrival, next_sample, end) - now))
    for client in clients:
        client.join(STUCK_SECONDS + 10)
        if client.is_alive():
            load.fault("a client never ended")


def judge(load, monitor, files_before):
    """Once nobody asks any more: what must be as before is as before."""
    deadline = time.monotonic() + DRAIN_SECONDS_MAX
    row = monitor.sample()
    while time.monotonic() < deadline and (row["requests_running"] or row["requests_waiting"]
                                           or row["pages_used"]):
        time.sleep(0.2)
        row = monitor.sample()
    for name in ("requests_running", "requests_waiting", "pages_used"):
        if row[name]:
            load.fault(f"{name} is {row[name]}, {DRAIN_SECONDS_MAX} s after the last request")
    try:
        load.get("/ready")
    except OSError as error:
        load.fault(str(error))
    if files_open(load.pid) > files_before + 2:
        load.fault(f"{files_open(load.pid)} files are open, {files_before} were")
    # The first third fills what is filled once: pages, threads' heaps, the answers' buffers.
    judged = monitor.rows[len(monitor.rows) // 3:]
    line = statistics.linear_regression([r["seconds"] for r in judged],
                                        [r["rss_kib"] for r in judged])
    span = judged[-1]["seconds"] - judged[0]["seconds"]
    growth = line.slope * span
    allowed = max(RSS_GROWTH_FLOOR_KIB, RSS_GROWTH_MAX * judged[0]["rss_kib"])
    print(f"RSS: {growth / 1024:+.1f} MiB in {span:.0f} s of {judged[0]['rss_kib'] / 1024:.0f} "
          f"MiB; allowed {allowed / 1024:.1f}")
    if growth > allowed:
        load.fault(f"RSS grew by {growth / 1024:.1f} MiB")


def main():
    parser = argparse.ArgumentParser()
    for name, kind in (("port", int), ("pid", int), ("minutes", float), ("sequences", int),
                       ("csv", str)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    threading.stack_size(512 * 1024)
    seconds = given.minutes * 60
    load = Load(given.port, given.pid, given.seed)
    files_before = files_open(given.pid)
    monitor = Monitor(load, given.csv)
    calibration = min(60.0, seconds / 5)
    rate = capacity(load, monitor, given.sequences, calibration)
    print(f"capacity: {rate:.2f} requests a second; from now on {LOAD_FACTOR} times that",
          flush=True)
    overload(load, monitor, LOAD_FACTOR * rate, seconds - calibration)
    judge(load, monitor, files_before)
    print("counts: " + ", ".join(f"{name} {count}" for name, count in sorted(load.counts.items())))
    for fault in load.faults:
        print(f"FAULT: {fault}")
    return 1 if load.faults else 0


if __name__ == "__main__":
    sys.exit(main())
