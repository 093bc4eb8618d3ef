#!/usr/bin/env python3
# tests/tidy/tidy_test.py
# Plants one violation a rule into a small clean tree and expects tidy to name exactly that one. The
# clean tree itself must pass, so that no rule cries on what STYLE.md allows.
import json
import shutil
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import budgets  # noqa: E402
import compiled  # noqa: E402
import doc_commands  # noqa: E402
import layers  # noqa: E402
import tidy  # noqa: E402
from tree import Tree, strip  # noqa: E402

CMAKE = """\
plumb_module(base)
plumb_module(tensor DEPS base LIBS fmt::fmt)  # telemetry comes later
plumb_module(text DEPS base)
plumb_module(engine DEPS base text tensor)
plumb_module(api DEPS base text engine LIBS nlohmann_json::nlohmann_json)
"""
GOOD = {
    "README.md": "Run `./scripts/go.sh`, read `base/clock.h` and [the rest](ARCHITECTURE.md).\n"
                 "```sh\n./scripts/go.sh --port 8000\ncurl -H 'content-type: text/plain' x\n```\n"
                 "Not files: `text/event-stream`, `v1/models`, `build/release/plumb`, `a.b`.\n",
    "ARCHITECTURE.md": "base tensor text engine api, see `src/engine/*.h` and `engine/request`.\n",
    "STYLE.md": "Style\n", "CONTRIBUTING.md": "How\n", "LICENSE": "Apache-2.0\n",
    "CMakeLists.txt": CMAKE,
    "scripts/go.sh": "#!/usr/bin/env bash\n# Goes.\n# And says so.\ngo() {\n  echo gone\n}\n",
    "src/base/clock.h": """\
        // base/clock.h
        // The time. TODO(perf): read it less often.
        #pragma once
        namespace plumb::base {
        class Clock {
         public:
          Clock() : ticks_{0}, other_(1) { ticks_ = 2; }
          Clock(const Clock&) = delete;
          long Now() const { return ticks_; }  // never calls steady_clock::now()

         private:
          long ticks_ = 0, other_;
        };
        }  // namespace plumb::base
        """,
    "src/base/clock.cc": """\
        // base/clock.cc: where time comes from.
        // The only call of now() in the tree.
        #include "base/clock.h"

        #include <chrono>

        namespace {
        auto t = std::chrono::steady_clock::now();
        const char* text = "std::thread printf(";
        const char* raw = R"(rand() // getenv("x"))";
        }  // namespace
        """,
    "src/base/clock_test.cc": """\
        // base/clock_test.cc
        // Time does not run backwards.
        #include "base/clock.h"

        #include <gtest/gtest.h>

        TEST(Clock, NeverRunsBackwards) { EXPECT_EQ(1, 1); }
        """,
    "src/tensor/kernel.h": "// tensor/kernel.h\n// Sums.\n#pragma once\n#include <fmt/format.h>\n"
                           "int Sum(int count = 1'000);\n",
    "src/tensor/kernel.cc": "// tensor/kernel.cc\n// Sums, in order.\n"
                            "#include \"tensor/kernel.h\"\n#include \"base/clock.h\"\n"
                            "int Sum(int count) { return count; }\n",
    "src/engine/request.h": "// engine/request.h\n// What is asked.\n#pragma once\n",
    "src/engine/engine.cc": "// engine/engine.cc\n// Answers.\n#include \"engine/request.h\"\n"
                            "#include \"tensor/kernel.h\"\n#include \"engine/inner.h\"\n",
    "src/engine/inner.h": "// engine/inner.h\n// For the engine alone.\n#pragma once\n",
    "src/api/api.cc": "// api/api.cc\n// Speaks JSON.\n#include \"engine/request.h\"\n"
                      "#include <nlohmann/json.hpp>\n",
    **{f"src/{m}/README.md": f"What {m} is.\n" for m in ("base", "tensor", "engine", "api")},
    "rust/src/lib.rs": "// The library.\n// It lends 'a: see tokens.\nmod tokens;\n"
                       "fn f<'a>(x: &'a str) -> char { '\\'' }\n",
    "rust/src/tokens.rs": "// Tokens.\n// And their tests.\n#[test]\nfn round_trips_text() {}\n",
    "tests/wire/CMakeLists.txt": "file(GLOB all *_test.cc)\n",
    "tests/wire/wire_test.cc": "// tests/wire/wire_test.cc\n// Replays.\n"
                               "TEST(Wire, RefusesNothing) { ExpectRefusal(0); }\n",
}


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="tidy_test."))
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in GOOD.items():
            self.write(path, text)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def judge(self):
        tree = Tree.load(self.root)
        out = [v for rule in tidy.STATIC_RULES for v in rule(tree)]
        allowed, wrong = tidy.read_allow(tree.text("tests/tidy/allow.txt"))
        return wrong + tidy.apply_allow(out, allowed)

    def expect(self, rule, path, line=None):
        """Exactly one violation, of this rule, there."""
        found = self.judge()
        self.assertEqual([(v.rule, v.path) for v in found], [(rule, path)],
                         "\n".join(map(str, found)))
        if line:
            self.assertEqual(found[0].line, line)

    def append(self, path, text):
        self.write(path, textwrap.dedent(GOOD[path]) + text)

    def test_a_clean_tree_passes(self):
        self.assertEqual([str(v) for v in self.judge()], [])

    def test_a_forbidden_include_is_named(self):
        self.append("src/tensor/kernel.cc", '#include "engine/request.h"\n')
        self.expect("layers", "src/tensor/kernel.cc", 6)

    def test_an_include_outside_deps_is_named(self):
        self.write("src/text/README.md", "x\n")
        self.append("src/engine/engine.cc", '#include "kvcache/pool.h"\n')
        self.write("src/kvcache/pool.h", "// kvcache/pool.h\n// Pages.\n#pragma once\n")
        self.write("src/kvcache/README.md", "x\n")
        self.append("ARCHITECTURE.md", "kvcache\n")
        self.expect("layers", "src/engine/engine.cc")

    def test_deps_beyond_the_table_are_named(self):
        self.write("CMakeLists.txt", CMAKE.replace("text DEPS base", "text DEPS base engine"))
        self.expect("layers", "CMakeLists.txt", 3)

    def test_api_sees_only_the_contract_of_the_engine(self):
        self.append("src/api/api.cc", '#include "engine/inner.h"\n')
        self.expect("layers", "src/api/api.cc", 5)

    def test_base_includes_no_library(self):
        self.append("src/base/clock.cc", "#include <fmt/format.h>\n")
        self.expect("layers", "src/base/clock.cc")

    def test_a_library_outside_libs_is_named(self):
        self.append("src/engine/engine.cc", "#include <boost/asio.hpp>\n")
        self.expect("layers", "src/engine/engine.cc")

    def test_a_header_only_library_has_its_modules(self):
        self.append("src/engine/engine.cc", "#include <CLI/App.hpp>\n")
        self.expect("layers", "src/engine/engine.cc")

    def test_an_include_of_no_file_is_named(self):
        self.append("src/api/api.cc", '#include "engine/absent.h"\n')
        self.expect("layers", "src/api/api.cc", 5)

    def test_an_unknown_module_is_named(self):
        self.write("src/extra/README.md", "x\n")
        self.append("ARCHITECTURE.md", "extra\n")
        self.expect("layers", "src/extra")

    def test_a_module_that_nothing_builds_is_named(self):
        self.write("CMakeLists.txt", CMAKE.replace("plumb_module(api", "# plumb_module(api"))
        rules = {v.rule for v in self.judge()}
        self.assertEqual(rules, {"layers"})

    def test_a_long_file_needs_a_reason(self):
        self.append("src/tensor/kernel.cc", "// more\n" * 500)
        self.expect("file-500", "src/tensor/kernel.cc")

    def test_a_file_above_the_maximum_fails(self):
        self.append("src/tensor/kernel.cc", "// more\n" * 800)
        self.expect("file-800", "src/tensor/kernel.cc")

    def test_a_long_header_fails(self):
        self.append("src/tensor/kernel.h", "// more\n" * 250)
        self.expect("header", "src/tensor/kernel.h")

    def test_a_long_line_fails(self):
        self.append("src/tensor/kernel.h", "// " + "x" * 98 + "\n")
        self.expect("line", "src/tensor/kernel.h", 6)

    def test_a_long_function_fails_in_each_language(self):
        cases = {"src/tensor/kernel.cc": "int Long() {\n" + "  ;\n" * 69 + "}\n",
                 "rust/src/tokens.rs": "fn long() {\n" + "    ();\n" * 69 + "}\n",
                 "scripts/go.sh": "long() {\n" + "  :\n" * 69 + "}\n"}
        for path, text in cases.items():
            with self.subTest(path):
                self.append(path, text)
                self.expect("function", path)
                self.write(path, GOOD[path])
        self.write("scripts/go.py", "# Goes.\n# On.\ndef long():\n" + "    pass\n" * 70)
        self.expect("function", "scripts/go.py", 3)

    def test_a_big_file_fails(self):
        self.write("docs/picture.bin", "\0" * ((1 << 20) + 1))
        self.expect("big-file", "docs/picture.bin")

    def test_a_missing_prologue_is_named(self):
        self.write("src/engine/inner.h", "#pragma once\n")
        self.expect("prologue", "src/engine/inner.h")

    def test_a_prologue_with_another_name_is_named(self):
        self.write("src/engine/inner.h", "// engine/outer.h\n// Copied.\n#pragma once\n")
        self.expect("prologue", "src/engine/inner.h")

    def test_each_banned_call_is_named_outside_its_home(self):
        for rule, call in {
                "now": "auto x = std::chrono::system_clock::now();",
                "random": "std::random_device device;",
                "thread": "std::thread worker;",
                "printf": 'void F() { std::printf("x"); }',
                "getenv": 'auto x = std::getenv("HOME");',
                "regex": "std::regex pattern;",
                "sleep": "void F() { std::this_thread::sleep_for(x); }",
                "new": "int* x = new int;",
                "throw": "void F() { throw 1; }",
                "rtti": "auto x = dynamic_cast<Y*>(z);",
                "disk": "std::ifstream file;",
                "network": "int x = ::socket(1, 2, 3);"}.items():
            with self.subTest(rule):
                self.append("src/engine/engine.cc", call + "\n")
                self.expect(rule, "src/engine/engine.cc", 6)

    def test_the_fields_of_requests_are_those_of_the_document(self):
        body = {"$ref": "#/components/schemas/Ask"}
        content = {"application/json": {"schema": {"allOf": [body]}}}
        openapi = {"paths": {"/v1/ask": {"post": {"requestBody": {"content": content}}}},
                   "components": {"schemas": {"Ask": {"properties": {"model": {}, "stop": {}}}}}}
        self.write("src/api/openapi/ask.json", json.dumps(openapi))
        document = "docs/api_coverage.md"
        head = "## POST /v1/ask\n\n| field | |\n|---|---|\n| `model` | |\n"
        good = head + "| `stop[].text` | `no` |\n\n| of an answer | |\n| `id` | |\n"
        self.expect("api-fields", document, 1)
        self.write(document, good)
        self.assertEqual(self.judge(), [])
        self.write(document, head)
        self.expect("api-fields", document, 1)
        self.write(document, head + "| `stop`, `n` | |\n")
        self.expect("api-fields", document, 6)
        self.write(document, good.replace("/v1/ask", "/v1/tell"))
        self.expect("api-fields", document, 1)

    def test_more_spellings_of_banned_calls_are_named(self):
        for call in ("int x = rand();", "time_t t = time(nullptr);", "delete x;", "delete[] x;",
                     "std::jthread t;", "auto f = std::async(g);", "fprintf(stderr, x);",
                     "usleep(3);", "std::regex_search(a, b);"):
            with self.subTest(call):
                self.append("src/engine/engine.cc", call + "\n")
                self.assertEqual(len(self.judge()), 1)

    def test_lookalikes_of_banned_calls_pass(self):
        self.append("src/engine/engine.cc", "\n".join([
            "int x = clock.time(0);", "int y = runtime(0);", "X(const X&) = delete;",
            "auto z = std::unique_ptr<X>(new X(1));", "int rethrown = operand(1);",
            "auto id = std::this_thread::get_id();", "fmt::print(out, x);", "strand(1);"]) + "\n")
        self.assertEqual([str(v) for v in self.judge()], [])

    def test_using_namespace_in_a_header_is_named(self):
        self.append("src/engine/inner.h", "using namespace std;\n")
        self.expect("using-namespace", "src/engine/inner.h")

    def test_a_sleep_in_a_test_is_named(self):
        self.append("tests/wire/wire_test.cc", "void Wait() { sleep(1); }\n")
        self.expect("sleep", "tests/wire/wire_test.cc")
        self.write("tests/wire/wire_test.cc", GOOD["tests/wire/wire_test.cc"])
        self.write("tests/wire/wait.py", "# Waits.\n# Badly.\nimport time\ntime.sleep(1)\n")
        self.expect("sleep", "tests/wire/wait.py", 4)

    def test_a_todo_without_a_kind_is_named(self):
        for text in ("// TODO: later", "// TODO(me): later", "// FIXME", "// TODO(perf) later"):
            with self.subTest(text):
                self.append("src/engine/inner.h", text + "\n")
                self.expect("todo", "src/engine/inner.h", 4)

    def test_a_machine_path_is_named(self):
        self.append("README.md", "See /wo" "rk/main/x for more.\n")
        self.expect("machine-path", "README.md")

    def test_a_header_without_pragma_once_is_named(self):
        self.write("src/engine/inner.h", "// engine/inner.h\n// Twice.\n")
        self.expect("pragma-once", "src/engine/inner.h")

    def test_the_own_header_comes_first(self):
        self.write("src/tensor/kernel.cc", "// tensor/kernel.cc\n// Sums.\n#include <vector>\n"
                                           "#include \"tensor/kernel.h\"\n"
                                           "#include \"base/clock.h\"\n")
        self.expect("own-header", "src/tensor/kernel.cc", 3)

    def test_a_header_that_only_its_own_files_include_is_dead(self):
        self.write("src/engine/lonely.h", "// engine/lonely.h\n// Alone.\n#pragma once\n")
        self.write("src/engine/lonely.cc", "// engine/lonely.cc\n// Alone.\n"
                                           "#include \"engine/lonely.h\"\n")
        self.expect("dead-file", "src/engine/lonely.h")

    def test_a_source_that_no_glob_builds_is_dead(self):
        self.write("src/engine/a/b/deep.cc", "// engine/a/b/deep.cc\n// Too deep.\n")
        self.expect("dead-file", "src/engine/a/b/deep.cc")

    def test_a_test_source_that_no_list_names_is_dead(self):
        self.write("tests/wire/other.cc", "// tests/wire/other.cc\n// Forgotten.\n")
        self.expect("dead-file", "tests/wire/other.cc")

    def test_a_rust_file_without_mod_is_dead(self):
        self.write("rust/src/other.rs", "// Forgotten.\n// Here.\n")
        self.expect("dead-file", "rust/src/other.rs")

    def test_a_test_name_without_behaviour_is_named(self):
        for name in ("Test1", "Works", "Basic", "Parse", "Simple2", "ParserTest3"):
            with self.subTest(name):
                self.append("src/base/clock_test.cc",
                            f"TEST(Clock, {name}) {{ EXPECT_EQ(1, 1); }}\n")
                self.expect("test-name", "src/base/clock_test.cc")

    def test_python_and_rust_test_names_state_behaviour_too(self):
        self.write("tests/wire/one.py", "# One.\n# Test.\ndef test_1():\n    pass\n")
        self.expect("test-name", "tests/wire/one.py", 3)
        (self.root / "tests/wire/one.py").unlink()
        self.append("rust/src/tokens.rs", "#[test]\nfn works() {}\n")
        self.expect("test-name", "rust/src/tokens.rs")

    def test_a_test_that_asserts_nothing_is_named(self):
        self.append("src/base/clock_test.cc", "TEST(Clock, RunsWithoutEnd) { int x = 1; }\n")
        self.expect("test-asserts", "src/base/clock_test.cc")

    def test_a_path_that_does_not_exist_is_named(self):
        for text in ("`base/gone.h`", "[x](docs/gone.md)", "`src/tensor/gone/`", "`gone.sh`",
                     "`engine/gone`", "```sh\n./scripts/gone.sh\n```"):
            with self.subTest(text):
                self.append("README.md", text + "\n")
                self.expect("doc-path", "README.md")

    def test_a_module_without_readme_is_named(self):
        (self.root / "src/api/README.md").unlink()
        self.expect("module-readme", "src/api/README.md")

    def test_a_long_module_readme_is_named(self):
        self.append("src/api/README.md", "more\n" * 30)
        self.expect("module-readme", "src/api/README.md")

    def test_a_module_that_architecture_omits_is_named(self):
        self.write("ARCHITECTURE.md", "base tensor text engine\n")
        self.expect("module-named", "ARCHITECTURE.md")

    def test_a_missing_document_is_named(self):
        (self.root / "CONTRIBUTING.md").unlink()
        self.expect("doc-missing", "CONTRIBUTING.md")

    def test_an_allowed_violation_passes_with_a_reason(self):
        self.append("src/tensor/kernel.cc", "// more\n" * 500)
        self.write("tests/tidy/allow.txt", "file-500 src/tensor/kernel.cc one table of constants\n")
        self.assertEqual([str(v) for v in self.judge()], [])

    def test_an_allowance_needs_a_reason_and_a_use(self):
        self.write("tests/tidy/allow.txt", "file-500 src/tensor/kernel.cc\n")
        self.expect("allow", "tests/tidy/allow.txt")
        self.write("tests/tidy/allow.txt", "file-500 src/tensor/kernel.cc one table of constants\n")
        self.expect("allow", "tests/tidy/allow.txt")

    def test_a_header_that_needs_another_is_not_self_contained(self):
        self.append("src/engine/inner.h", "std::string name;\n")
        tree = Tree.load(self.root)
        (self.root / "src/tensor/kernel.h").unlink()  # it includes a library
        tree.paths.remove("src/tensor/kernel.h")
        found = compiled.check_self_contained(tree, "c++", compiled.Cache(None))
        self.assertEqual([(v.rule, v.path) for v in found],
                         [("self-contained", "src/engine/inner.h")])

    def test_a_passed_header_is_judged_again_when_what_it_includes_changes(self):
        self.append("src/engine/inner.h", '#include "engine/request.h"\n')
        cache = compiled.Cache(self.root / "cache.json")
        tree = Tree.load(self.root)
        tree.paths = ["src/engine/inner.h", "src/engine/request.h"]
        self.assertEqual(compiled.check_self_contained(tree, "c++", cache), [])
        cache.save()
        self.append("src/engine/request.h", "Nonsense x;\n")
        tree = Tree.load(self.root)
        tree.paths = ["src/engine/inner.h"]
        found = compiled.check_self_contained(tree, "c++", compiled.Cache(cache.path))
        self.assertEqual(len(found), 1)

    @unittest.skipUnless(shutil.which(compiled.FORMATTER), "no formatter here")
    def test_an_unformatted_file_is_named(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.append("src/engine/inner.h", "int   x ;\n")
        tree = Tree.load(self.root)
        tree.paths = ["src/engine/inner.h", "src/engine/request.h"]
        found = compiled.check_format(tree, compiled.Cache(None))
        self.assertEqual([(v.rule, v.path) for v in found], [("format", "src/engine/inner.h")])

    @unittest.skipUnless(shutil.which(compiled.SHELLCHECK), "no shellcheck here")
    def test_a_script_with_a_fault_is_named(self):
        self.append("scripts/go.sh", "rm -rf $1/x\n")
        found = compiled.check_shell(Tree.load(self.root), compiled.Cache(None))
        self.assertEqual([(v.rule, v.path) for v in found], [("shellcheck", "scripts/go.sh")])


class ParsingTest(unittest.TestCase):
    def names(self, code):
        return [name for name, _, _ in budgets.cpp_functions(strip(code))]

    def test_functions_are_told_from_scopes_and_initialisers(self):
        code = """
        namespace a { struct S : T { int x = 1; std::vector<int> v{1, 2};
          S() : x{1}, v(2) { F(); } void G() const noexcept override;
          auto H() -> int { return 1; } };
        enum class E { kA, kB };
        constexpr int kTable[] = {1, 2, 3};
        template <class T> requires std::integral<T> T Twice(T t) { if (t) { return t; } return 2; }
        bool operator==(const S& a, const S& b) { return true; }
        extern "C" { int f(void) { return 0; } }
        }"""
        self.assertEqual(self.names(code), ["S", "H", "Twice", "operator==", "f"])

    def test_comments_and_literals_are_blanked_in_place(self):
        code = ('int a = 1\'000; // x\nauto s = "\\"{"; char c = \'{\'; /* {\n} */ '
                'auto r = R"x({)x";')
        self.assertEqual(len(strip(code)), len(code))
        self.assertNotIn("{", strip(code))
        self.assertIn("int a = 1'000;", strip(code))

    def test_the_module_table_has_no_cycle(self):
        done = set()
        while len(done) < len(layers.MODULES):
            ready = {m for m, deps in layers.MODULES.items() if m not in done and
                     deps - {m} <= done}
            self.assertTrue(ready, "a cycle among " + ", ".join(set(layers.MODULES) - done))
            done |= ready


class DocCommandsTest(unittest.TestCase):
    def test_only_marked_blocks_run(self):
        text = "x\n```sh\nfalse\n```\n```sh run\ntrue\nls\n```\n"
        self.assertEqual(doc_commands.blocks(text), [(6, "true\nls\n")])

    def test_a_block_that_fails_anywhere_is_reported(self):
        self.assertIsNone(doc_commands.run("true\n", ".", "."))
        self.assertIn("status 1", doc_commands.run("false | true\necho late\n", ".", "."))


if __name__ == "__main__":
    unittest.main()
