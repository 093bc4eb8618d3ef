"""Writes the 200 held-out problems of results.json as conversations: problems.jsonl.

make_problems.py OUT      one JSON object a line: what a chat request says, and the right answer.
data.py, unchanged, makes them from seeds; the order of seeds is that of the evaluation that wrote
results.json, whose examples (every ninth prompt and answer) are compared. Needs numpy (data.py
imports it). MANIFEST.md says why the 15 of needle_text are not the same ones.
"""
import hashlib
import json
import os
import random
import sys

import data

HERE = os.path.dirname(os.path.abspath(__file__))
PLAN = [("arith", 40), ("list", 40), ("needle", 30), ("needle_text", 15), ("json", 20),
        ("multi", 15), ("greet", 10), ("story", 5), ("tools_call", 15), ("tools_answer", 10)]
SEED = 900_000_000
# Where json begins. needle_text comes before it and quotes the documentation of the Python that
# runs data.py (then 3.12), so how many seeds it tries depends on that; this is the one start from
# which all later examples agree.
JSON_SEED = 900_001_916
NEEDLE_LINES = [8, 20, 45, 60, 100]
OPERATIONS = {"+": "add", "-": "sub", "*": "mul"}
EXAMPLE_STEP = 9
EXAMPLE_PROMPT_CHARACTERS = 160


def draw(task, seed, count):
    """(messages, thinks) of one seed."""
    rng = random.Random(seed)
    if task.startswith("tools"):
        return data.t_tools(rng, stage=1)
    if task == "needle":
        return data.t_needle(rng, NEEDLE_LINES[count % len(NEEDLE_LINES)])
    return data.GENERATORS[task][0](rng)


def kind_of(task, messages, thinks):
    text = messages[0]["content"]
    if task == "arith":
        if thinks:
            return "arith_think"
        return "arith_chat_" + OPERATIONS[next(c for c in text if c in OPERATIONS)]
    if task == "list":
        words = text.split()
        return "list_" + words[0].lower() + ("_" + words[3] if words[0] == "What" else "")
    if task == "needle":
        return f"needle_{text.count(chr(10)) - 1}_lines"
    return task


def problem(task, seed, count):
    """None when the seed belongs to the training data, or makes no prompt of the answer's."""
    messages, thinks = draw(task, seed, count)
    if not data.heldout(data.first_prompt(messages)) and task != "greet":
        return None
    turns = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    cut = turns[0] if task in ("tools_call", "needle") else turns[-1]
    prompt = data.prompt_text(data.encode_chat(messages[:cut], thinks, generate=True))
    whole = data.prompt_text(data.encode_chat(messages[:cut + 1], thinks, generate=False))
    if not whole.startswith(prompt):
        return None
    return {"kind": kind_of(task, messages, thinks), "prompt": prompt,
            "target": whole[len(prompt):],
            "request": request(messages[:cut], thinks), "answer": answer(messages[cut], thinks)}


def request(messages, thinks):
    """What a chat request says to make that prompt."""
    body = {"thinking": {"type": "enabled" if thinks else "disabled"}}
    if thinks:
        body["reasoning_effort"] = "high"
    for message in messages:
        for name in ("tools", "response_format"):
            if name in message:
                body[name] = message[name]
    body["messages"] = [{k: v for k, v in m.items() if k not in ("tools", "response_format")}
                        for m in messages]
    return body


def answer(message, thinks):
    calls = [call["function"] for call in message.get("tool_calls", [])]
    return {"reasoning": message.get("reasoning_content", "") if thinks else "",
            "content": message["content"], "calls": calls}


def problems():
    out, seed = [], SEED
    for task, wanted in PLAN:
        if task == "json":
            seed = JSON_SEED
        count = 0
        while count < wanted:
            seed += 1
            found = problem(task, seed, count)
            if found:
                out.append(found)
                count += 1
    return out


def check_examples(found):
    with open(os.path.join(HERE, "results.json"), encoding="utf-8") as file:
        examples = json.load(file)["examples"]
    for index, example in enumerate(examples):
        made = found[index * EXAMPLE_STEP]
        if made["kind"] == "needle_text":
            continue
        same = (made["kind"] == example["task"] and made["target"] == example["expected"]
                and made["prompt"][-EXAMPLE_PROMPT_CHARACTERS:] == example["prompt"])
        if not same:
            sys.exit(f"problem {index * EXAMPLE_STEP} is not that of results.json")


def main():
    found = problems()
    check_examples(found)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        for made in found:
            digest = hashlib.sha256(made["prompt"].encode()).hexdigest()
            line = {"kind": made["kind"], "prompt_sha256": digest, **made["request"],
                    "answer": made["answer"]}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
