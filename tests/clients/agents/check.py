"""One agent corrects a word in a file, talking to a plumb server through a recorder.

Usage: check.py AGENT. The server replays a correct session (AGENT.json), so every exchange must be
as the protocol has it. PLUMB_AGENT_RECORD: a folder for what was said."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from agents import AGENTS, environment
from recorder import Recorder

HERE = pathlib.Path(__file__).resolve().parent
AGENT_SECONDS_MAX = 300
BEFORE, AFTER = 'print("helo, 세계")\n', 'print("hello, 세계")\n'


class Scripted:
    """agent_server over the agent's session."""

    def __init__(self, name: str, folder: pathlib.Path, scratch: pathlib.Path):
        session = scratch / "session.json"
        session.write_text((HERE / f"{name}.json").read_text().replace("<folder>", str(folder)))
        self.process = subprocess.Popen([os.environ["PLUMB_AGENT_SERVER"], str(session)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def faults(exchanges) -> list[str]:
    """What in the transcript is no correct protocol."""
    found = []
    asked = [exchange for exchange in exchanges if exchange.method == "POST"]
    if not asked:
        found.append("nothing was asked")
    for exchange in exchanges:
        where = f"{exchange.method} {exchange.path}"
        if not 200 <= exchange.status < 300:
            found.append(f"{where}: {exchange.status} {exchange.answer[:500].decode()}")
        if exchange.headers.get("x-stainless-retry-count", "0") != "0":
            found.append(f"{where}: sent again")
    bodies = [(exchange.path, exchange.body) for exchange in asked]
    if len(set(bodies)) != len(bodies):
        found.append("a request was sent twice")
    return found


def record(name: str, exchanges) -> None:
    if not (folder := os.environ.get("PLUMB_AGENT_RECORD")):
        return
    for number, exchange in enumerate(exchanges):
        path = pathlib.Path(folder) / f"{name}-{number}"
        path.with_suffix(".request").write_bytes(
            f"{exchange.method} {exchange.path}\n{json.dumps(exchange.headers, indent=1)}\n\n"
            .encode() + exchange.body)
        path.with_suffix(".answer").write_bytes(
            f"{exchange.status} {json.dumps(exchange.answer_headers)}\n\n".encode()
            + exchange.answer)


def main(name: str) -> int:
    modules = pathlib.Path(os.environ["PLUMB_AGENT_MODULES"])
    with tempfile.TemporaryDirectory(prefix="plumb-agent-") as scratch_name:
        scratch = pathlib.Path(scratch_name)
        folder, home = scratch / "work", scratch / "home"
        folder.mkdir()
        home.mkdir()
        (folder / "greet.py").write_text(BEFORE)
        with Scripted(name, folder, scratch) as server, Recorder(server.url) as recorder:
            agent = AGENTS[name](modules, recorder.url, "scripted", home)
            done = subprocess.run(agent.command, cwd=folder, env=environment(agent, home),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=AGENT_SECONDS_MAX, check=False)
        record(name, recorder.exchanges)
        found = faults(recorder.exchanges)
        if done.returncode != 0:
            found.append(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        if (text := (folder / "greet.py").read_text()) != AFTER:
            found.append(f"greet.py is {text!r}\n{done.stdout}\n{done.stderr}")
    for exchange in recorder.exchanges:
        print(f"  {exchange.method} {exchange.path} {len(exchange.body)} bytes: "
              f"{exchange.status}, {len(exchange.answer)} bytes")
    print(f"{name}: " + ("\n".join(["FAILED", *found]) if found else "done"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
