"""eval/speed/lib/fastllm_worker.py
fastllm in a process of its own, which loads a model once and answers every JSON line that it is
given, {"prompt": TOKENS, "output": TOKENS, "seed": N}, with another, {"prefill": .., "decode": ..}
in tokens/s. Uses what `ftllm benchmark` uses, with prompts of random tokens, so that no tokenizer
is asked. Run by fastllm.py: fastllm_worker.py MODEL THREADS VOCABULARY
"""
import json
import os
import random
import sys

GREEDY = {"do_sample": False, "top_p": 1.0, "top_k": 1, "temperature": 1.0, "repeat_penalty": 1.0}
FIRST_TOKEN = 3  # begin, end and pad stand before


def main():
    path, threads, vocabulary = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the library prints is no answer

    from ftllm.benchmark import _run_batch  # after the redirection: it prints when it is loaded
    from ftllm.util import make_normal_llm_model, make_normal_parser

    # Bounded replay of the decoder ("fast prefill"), as plumb does by default.
    options = make_normal_parser("worker").parse_args(
        [path, "--device", "cpu", "--threads", str(threads), "--max_batch", "1", "--fast_prefill"])
    model = make_normal_llm_model(options)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        draw = random.Random(request["seed"])
        tokens = [draw.randrange(FIRST_TOKEN, vocabulary - 1) for _ in range(request["prompt"])]
        result = _run_batch(model, tokens, request["output"], 1, GREEDY)
        between = result["tpop_avg"]
        answer = {"prefill": result["prefill_tokens_per_second"],
                  "decode": 1 / between if between else None,
                  "tokens": result["total_output_tokens"]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
