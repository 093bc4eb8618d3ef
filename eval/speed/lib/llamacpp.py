"""eval/speed/lib/llamacpp.py
llama.cpp's own benchmarks as samples: llama-bench (prompts, one stream), llama-batched-bench (many
streams), llama-quantize (files that both engines read). Flash attention is tried on and off, since
which is faster depends on the processor; batch sizes are llama.cpp's defaults.
"""
import ctypes
import json
import os
import sys
from pathlib import Path

from speed import SECONDS_MAX, run, say, sha256_of

FLASH = ("on", "off")


def tool(name):
    return Path(os.environ["LLAMACPP"]) / name


def _lines(text):
    """The JSON objects among the lines of an output."""
    found = []
    for line in (text or "").splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                say(f"not JSON: {line[:80]}")
    return found


def version(model, threads):
    rows = _lines(run([tool("llama-bench"), "-m", model, "-p", 1, "-n", 0, "-r", 1, "-t", threads,
                       "-o", "jsonl"]))
    return rows[0]["build_commit"] if rows else "unknown"


def system_info():
    """The line in which the build says what it uses: "CPU : AVX2 = 1 | AVX512 = 1 | ..."."""
    try:
        library = ctypes.CDLL(str(tool("libllama.so")))
        library.llama_print_system_info.restype = ctypes.c_char_p
        return library.llama_print_system_info().decode(errors="replace").strip(" |")
    except (OSError, AttributeError) as error:
        say(f"llama.cpp does not say what it was built for: {error}")
        return "unknown"


def describe_into(about, model, threads):
    """Adds which build is compared. Ends the program where it is not the pair of plumb's kernels:
    a claim for AVX2 needs AVX2 on both sides."""
    about["llama.cpp"] = version(model, threads)
    about["llama.cpp system_info"] = info = system_info()
    wants_avx2 = os.environ.get("PLUMB_KERNELS", "auto") == "avx2"
    if info != "unknown" and wants_avx2 == ("AVX512 = 1" in info):
        if wants_avx2 or "avx512f" in about.get("flags", ""):
            sys.exit(f"speed: plumb's kernels are '{'avx2' if wants_avx2 else 'auto'}', but "
                     f"llama.cpp was built with '{info}'; name another PLUMB_LLAMACPP_BUILD")


def bench(model, threads, prompts, decode, repeat, depth=0, seconds_max=SECONDS_MAX):
    """[(kind, length, engine, [tokens/s])]: each prompt length, and `decode` tokens at `depth`."""
    found = []
    lengths = ",".join(str(prompt) for prompt in prompts) or "0"
    for flash in FLASH:
        rows = _lines(run([tool("llama-bench"), "-m", model, "-p", lengths, "-n", decode, "-d",
                           depth, "-r", repeat, "-t", threads, "-fa", flash, "-o", "jsonl"],
                          seconds_max))
        for row in rows:
            kind, length = (("prefill", row["n_prompt"]) if row["n_prompt"] else
                            ("decode", row["n_gen"]))
            found.append((kind, length, f"llama.cpp fa={flash}", row["samples_ts"]))
    return found


def batched(model, threads, shape, repeat, seconds_max=SECONDS_MAX):
    """[(engine, [tokens/s])] of shape["batch"] streams with shape["context"] tokens each."""
    found = []
    batch, context, decode = shape["batch"], shape["context"], shape["decode"]
    size = batch * (context + decode)
    for flash in FLASH:
        rows = _lines(run([tool("llama-batched-bench"), "-m", model, "-c", size, "-npp", context,
                           "-ntg", decode, "-npl", ",".join([str(batch)] * repeat), "-t", threads,
                           "-tb", threads, "-fa", flash, "--output-format", "jsonl"],
                          seconds_max))
        speeds = [row["speed_tg"] for row in rows if row.get("pl") == batch]
        if speeds:
            found.append((f"llama.cpp fa={flash}", speeds))
    return found


def requantised(source, kind):
    """A file of another quantisation, made once beside the cache; for speed, not for quality. Its
    name has the source's and the beginning of its hash, so that no two sources meet in one."""
    folder = Path(os.environ["SPEED_CACHE"]) / "speed"
    target = folder / f"{Path(source).stem}-{sha256_of(source)[:8]}.{kind}.gguf"
    if target.exists():
        return target
    say(f"making {target.name}")
    temporary = target.with_suffix(".tmp")
    if run([tool("llama-quantize"), "--allow-requantize", source, temporary, kind]) is None:
        return None
    temporary.replace(target)
    return target
