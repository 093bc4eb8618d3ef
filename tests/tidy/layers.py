# tests/tidy/layers.py
# Who may include whom: the module table of ARCHITECTURE.md, held against the includes of every
# source file and against the DEPS and LIBS lists of CMakeLists.txt, so that the three never differ.
import re

from tree import Violation

MODULES = {
    "base": set(),
    "telemetry": {"base"},
    "text": {"base"},
    "net": {"base", "telemetry"},
    "tensor": {"base", "telemetry"},
    "tenancy": {"base", "telemetry"},
    "model": {"base", "tensor"},
    "kvcache": {"base", "telemetry", "net"},
    "engine": {"base", "telemetry", "text", "tensor", "model", "kvcache"},
    "cluster": {"base", "telemetry", "net", "kvcache", "engine"},
    "api": {"base", "telemetry", "net", "text", "tenancy", "engine"},
}
MODULES["cli"] = set(MODULES)  # wiring: may see everything

# What modules above the waist see of the engine.
ENGINE_CONTRACT = {"engine/request.h", "engine/generator.h", "engine/handoff.h"}
ABOVE_THE_WAIST = {"api", "cluster"}

# Third-party headers by prefix -> the library that LIBS must name.
LIBRARIES = {
    "fmt/": "fmt::fmt", "spdlog/": "spdlog::spdlog", "prometheus/": "prometheus-cpp::core",
    "nlohmann/": "nlohmann_json::nlohmann_json", "simdjson": "simdjson::simdjson",
    "boost/": "Boost::headers", "openssl/": "OpenSSL::", "sleef": "PkgConfig::SLEEF",
    "plumb_rust": "plumb_rust",
    "grpc": "gRPC::", "google/protobuf/": "protobuf::", "ucp/": "PkgConfig::UCX",
    "xxhash": "PkgConfig::XXHASH", "zstd": "PkgConfig::ZSTD", "sqlite3": "SQLite::SQLite3",
    "liburing": "PkgConfig::URING", "rados/": "PkgConfig::RADOS", "mpi.h": "MPI::",
}

# The one library under base: its hash names content everywhere.
BASE_LIBRARY = "plumb_rust"

# Libraries that are headers only, so that no LIBS shows them -> the modules that may include them.
HEADER_ONLY = {"CLI/": {"cli"}, "toml++/": {"cli"}}


def declared(text):
    """{module: (line, DEPS, LIBS)} from the plumb_module() calls of CMakeLists.txt."""
    text = re.sub(r"#[^\n]*", lambda m: " " * len(m.group(0)), text)
    found = {}
    for match in re.finditer(r"\bplumb_module\(([^)]*)\)", text):
        words, lists, current = match.group(1).split(), {"DEPS": [], "LIBS": []}, None
        for word in words[1:]:
            if word in lists:
                current = lists[word]
            elif current is not None:
                current.append(word)
        line = text.count("\n", 0, match.start()) + 1
        found[words[0]] = (line, lists["DEPS"], lists["LIBS"])
    return found


def check(tree):
    cmake = declared(tree.text("CMakeLists.txt"))
    return _check_cmake(tree, cmake) + _check_sources(tree, cmake)


def _check_cmake(tree, cmake):
    out = []
    for module, (line, deps, _) in cmake.items():
        for dep in deps:
            if module not in MODULES or dep not in MODULES[module]:
                out.append(Violation("CMakeLists.txt", line, "layers",
                                     f"{module} may not depend on {dep} (module table)"))
    for module in tree.modules():
        if module not in MODULES:
            out.append(Violation(f"src/{module}", 1, "layers", "not in the module table"))
        elif module not in cmake and tree.select(".cc", under=f"src/{module}/"):
            out.append(Violation(f"src/{module}", 1, "layers", "no plumb_module() builds it"))
    return out


def _check_sources(tree, cmake):
    out = []
    for path in tree.select(".h", ".cc", under="src/"):
        module = path.split("/")[1]
        _, deps, libs = cmake.get(module, (0, [], []))
        for line, spelling in tree.includes(path):
            name = spelling[1:-1]
            problem = (_judge_project(path, module, name, deps) if _is_ours(tree, name) else
                       _judge_library(module, name, libs) if spelling[0] == "<" or
                       _library(name) else f"{spelling} is no file under src/")
            if problem:
                out.append(Violation(path, line, "layers", problem))
    return out


def _is_ours(tree, name):
    return name.split("/")[0] in MODULES and tree.exists(f"src/{name}")


def _judge_project(path, module, name, deps):
    target = name.split("/")[0]
    if target == module:
        return None
    if target not in MODULES.get(module, set()):
        return f"{module} may not include {name} (module table)"
    if target not in deps:
        return f"{name}: DEPS of {module} in CMakeLists.txt does not name {target}"
    if module in ABOVE_THE_WAIST and target == "engine" and name not in ENGINE_CONTRACT:
        return f"{module} sees the engine's contract headers only, not {name}"
    return None


def _library(name):
    return next((lib for prefix, lib in LIBRARIES.items() if name.startswith(prefix)), None)


def _judge_library(module, name, libs):
    library = _library(name)
    for prefix, modules in HEADER_ONLY.items():
        if name.startswith(prefix) and module not in modules:
            return f"<{name}> belongs to {', '.join(sorted(modules))}"
    if library is None:
        return None
    if module == "base" and library != BASE_LIBRARY:
        return f"base includes the standard library only, not <{name}>"
    if not any(given.startswith(library) for given in libs):
        return f"<{name}>: LIBS of {module} in CMakeLists.txt does not name {library}"
    return None


