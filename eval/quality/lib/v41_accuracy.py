"""The asking and judging half of v41_accuracy.sh, which says what it is for.

An answer is right when its content and its calls of tools are the expected ones (names, and the
arguments in their order); it is exact when its reasoning is the expected one, too, and the model
ended it. So does the evaluation judge that wrote results.json, on the text before it is parsed.
"""
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

POINTS_MAX = 1.5
MODE = "kvq"  # what plumb serves
REQUESTS_AT_ONCE = 8
SECONDS_MAX = 60
TOKENS_MAX = 400
ALL = "ALL (without story)"
OWN = ("kind", "prompt_sha256", "answer")
COLUMNS = ["kind", "n", "answer_reference", "answer", "answer_points", "exact_reference", "exact",
           "exact_points"]


def body_of(problem, model):
    asked = {name: value for name, value in problem.items() if name not in OWN}
    return {"model": model, "temperature": 0, "max_tokens": TOKENS_MAX, **asked}


def ask(url, body):
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:
        return json.load(response)["choices"][0]


def arguments_of(call):
    """The arguments in their order; their text where they are no JSON."""
    try:
        return list(json.loads(call["arguments"]).items())
    except (ValueError, AttributeError):
        return call["arguments"]


def calls_of(calls):
    return [(call["name"], arguments_of(call)) for call in calls]


def judge(problem, choice):
    """(right, exact)"""
    message, wanted = choice["message"], problem["answer"]
    content = message.get("content") or ""
    calls = calls_of([call["function"] for call in message.get("tool_calls") or []])
    same_calls = calls == calls_of(wanted["calls"])
    right = same_calls and content.strip() == wanted["content"].strip()
    exact = (same_calls and content == wanted["content"]
             and (message.get("reasoning_content") or "") == wanted["reasoning"]
             and choice["finish_reason"] in ("stop", "tool_calls"))
    return right, exact


def check_prompts(problems, model):
    """How many requests do not become the reference's prompt, as plumb itself encodes them."""
    def same(problem):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(body_of(problem, model), file)
            file.flush()
            out = subprocess.run([os.environ["PLUMB"], "model", "prompt", "--model", model,
                                  "--request", file.name], capture_output=True, check=True,
                                 timeout=SECONDS_MAX).stdout
        prompt = json.loads(out)["prompt"]
        return hashlib.sha256(prompt.encode()).hexdigest() == problem["prompt_sha256"]
    with concurrent.futures.ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return sum(not found for found in pool.map(same, problems))


def shares(problems, judged):
    """{kind: (n, right, exact)}, in the order of the problems, then of all."""
    by_kind = collections.defaultdict(list)
    for problem, verdict in zip(problems, judged):
        by_kind[problem["kind"]].append(verdict)
    by_kind[ALL] = [v for p, v in zip(problems, judged) if p["kind"] != "story"]
    return {kind: (len(found), sum(v[0] for v in found) / len(found),
                   sum(v[1] for v in found) / len(found)) for kind, found in by_kind.items()}


def compare(found, reference):
    """Rows as COLUMNS says, and the kinds that are too far off."""
    rows, wrong = [], []
    for kind, (count, right, exact) in sorted(found.items(), key=lambda item: item[0] == ALL):
        wanted = reference[kind]
        right, exact = round(right, 3), round(exact, 3)  # as there
        points = [round(100 * (right - wanted["answer"]), 1),
                  round(100 * (exact - wanted["exact"]), 1)]
        rows.append([kind, count, wanted["answer"], right, points[0], wanted["exact"], exact,
                     points[1]])
        if count != wanted["n"] or max(abs(value) for value in points) > POINTS_MAX:
            wrong.append(kind)
    return rows, wrong


def show(rows):
    print(f"{'kind':<22}{'n':>5}{'results':>9}{'here':>7}{'points':>8}"
          f"{'exact':>9}{'here':>7}{'points':>8}")
    for kind, count, right, ours, points, exact, our_exact, exact_points in rows:
        print(f"{kind:<22}{count:>5}{right:>9.3f}{ours:>7.3f}{points:>8.1f}"
              f"{exact:>9.3f}{our_exact:>7.3f}{exact_points:>8.1f}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("url", "model", "commit", "trained"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--csv")
    options = parser.parse_args()
    trained = Path(options.trained)
    lines = (trained / "problems.jsonl").read_text(encoding="utf-8").splitlines()
    problems = [json.loads(line) for line in lines]
    reference = json.loads((trained / "results.json").read_text(encoding="utf-8"))
    others = check_prompts(problems, options.model)
    print(f"prompts: {len(problems)}, {others} not as the reference's")
    with concurrent.futures.ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        choices = list(pool.map(
            lambda problem: ask(options.url, body_of(problem, options.model)), problems))
    judged = [judge(problem, choice) for problem, choice in zip(problems, choices)]
    rows, wrong = compare(shares(problems, judged), reference["accuracy"][MODE])
    show(rows)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            file.write(f"# model: {options.model}\n# reference: results.json, {MODE}\n"
                       f"# commit: {options.commit}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    if others or wrong:
        sys.exit(f"v41_accuracy: more than {POINTS_MAX} points off, or other prompts: "
                 f"{', '.join(wrong) or 'prompts'}")


if __name__ == "__main__":
    main()
