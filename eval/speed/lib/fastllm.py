"""eval/speed/lib/fastllm.py
fastllm as a peer: a worker process (fastllm_worker.py) that keeps its model loaded, and is stopped
while another engine is measured, since its threads spin between requests.
"""
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path

from speed import say

LOAD_SECONDS_MAX = 300
ANSWER_SECONDS_MAX = 300
PR_SET_PDEATHSIG = 1


def _end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Fastllm:
    """None of its methods raises: what does not work is said, and gives None."""

    def __init__(self, model, threads, vocabulary):
        self.model, self.threads, self.vocabulary = model, threads, vocabulary
        self.process = None

    def start(self):
        worker = Path(__file__).with_name("fastllm_worker.py")
        environment = os.environ | {"PYTHONPATH": os.environ["FASTLLM_PACKAGES"]}
        log = open(Path(os.environ["SPEED_CACHE"]) / "speed" / "fastllm.log", "w", encoding="utf-8")
        with log:
            self.process = subprocess.Popen(
                [sys.executable, worker, self.model, str(self.threads), str(self.vocabulary)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment,
                text=True, preexec_fn=_end_with_parent)
        if self._answer(LOAD_SECONDS_MAX) is None:
            say(f"fastllm did not load the model: {log.name}")
            return False
        self.pause()
        return True

    def pause(self):
        if self.process:
            self.process.send_signal(signal.SIGSTOP)

    def measure(self, prompt, output, seed):
        """{"prefill", "decode", "tokens"} of one request, or None."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps({"prompt": prompt, "output": output,
                                                 "seed": seed}) + "\n")
            self.process.stdin.flush()
        except OSError:
            say("fastllm has ended")
            return None
        answer = self._answer(ANSWER_SECONDS_MAX)
        if answer is not None:
            self.pause()
        return answer

    def _answer(self, seconds_max):
        """The next line; without one in time, the process is ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(seconds_max) else ""
        if line:
            return json.loads(line)
        say(f"fastllm gave no answer within {seconds_max} s")
        self.stop()
        return None

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
