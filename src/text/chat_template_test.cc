// text/chat_template_test.cc
// What a template may say and do: rendering rules, its own errors, and hostile ones, each of which
// must end with an error soon and without much memory. Real templates: tests/golden/template.
#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/thread.h"

namespace plumb::text {
namespace {

using base::Code;
using testing::HasSubstr;

const std::vector<ChatMessage> kMessages = {{"system", "Be brief.", ""},
                                            {"user", "안녕 <b>", "kim"}};

base::Result<std::string> Render(std::string_view source,
                                 const std::vector<ChatMessage>& messages = kMessages,
                                 bool add_generation_prompt = true) {
  ASSIGN_OR_RETURN(const auto compiled,
                   ChatTemplate::Compile(source, {"<s>", "</s>", "29 Nov 2026"}));
  return compiled->Render(messages, add_generation_prompt);
}

std::string Text(std::string_view source) {
  auto text = Render(source);
  EXPECT_TRUE(text.ok()) << source << ": " << text.status().ToString();
  return text.ok() ? *text : "";
}

TEST(ChatTemplate, RendersMessagesAndVariables) {
  EXPECT_EQ(
      Text("{{ bos_token }}{% for m in messages %}\n<{{ m.role }}>{{ m['content'] }}{{ "
           "eos_token }}\n{% endfor %}\n{% if add_generation_prompt %}<assistant>{% endif %}"),
      "<s><system>Be brief.</s>\n<user>안녕 <b></s>\n<assistant>");
  EXPECT_EQ(Text("{{ messages[1].name }}{{ messages[0].name is defined }}"), "kimFalse");
  EXPECT_EQ(Text("{{ tools is none }}{{ documents is none }}{{ nothing is defined }}"),
            "TrueTrueFalse");
  EXPECT_EQ(*Render("{{ add_generation_prompt }}", kMessages, false), "False");
  EXPECT_EQ(*Render("{{ messages|length }}", {}), "0");
}

TEST(ChatTemplate, HasWhatTransformersGives) {
  EXPECT_EQ(Text("{{ {'a': [1, none, true, 'é\"<']}|tojson }}"),
            R"({"a": [1, null, true, "é\"<"]})");
  EXPECT_EQ(Text("{{ {'a': [1], 'b': {}}|tojson(indent=2) }}"),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(Text("{{ strftime_now('%d %b %Y') }}"), "29 Nov 2026");
  EXPECT_EQ(Text("{% generation %}x{% endgeneration %}"), "x");
  EXPECT_EQ(Text("{% raw %}{% generation %}{% endraw %}"), "{% generation %}");
  EXPECT_EQ(Text("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 3 %}"
                 "{% break %}{% endif %}{{ i }}{% endfor %}"),
            "013");
  EXPECT_EQ(Text("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                 "{% endfor %}{{ ns.n }}"),
            "2");
  EXPECT_EQ(Text("{{ 'a b'.split(' ')[-1].strip().upper() }}{{ messages[0].get('x', 'd') }}"),
            "Bd");
}

TEST(ChatTemplate, KeepsTheMeaningOfWhatItGuards) {
  EXPECT_EQ(Text("{{ 3 * 4 }} {{ 'ab' * 2 }} {{ 2 * -3 }} {{ -2 * (1 + 2) }} {{ [2][0] * 3 }}"),
            "12 abab -6 -6 6");
  EXPECT_EQ(Text("{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set x = a if false else b %}{{ x }}"),
            "122");
  EXPECT_EQ(Text("{% macro f(x, y='z') -%}  {{ x }}{{ y }}  {%- endmacro %}{{ f(1) }}|"
                 "{{ f(1, y=2) }}"),
            "1z|12");
  EXPECT_EQ(Text("{% for k, v in {'a': 1}.items() -%}  {{ k }}{{ v }}{% endfor %}"), "a1");
  EXPECT_EQ(Text("{% set x %}<{{ 1 }}>{% endset %}{{ x }}{% with a = 1, b = 2 %}{{ a + b }}"
                 "{% endwith %}"),
            "<1>3");
  EXPECT_EQ(Text("{% macro f() %}{{ caller(1) }}{% endmacro %}{% call(u) f() %}{{ u }}"
                 "{% endcall %}"),
            "1");
}

TEST(ChatTemplate, PassesTheTemplatesOwnErrorOn) {
  const auto raised = Render("{{ raise_exception('roles must alternate') }}");
  ASSERT_FALSE(raised.ok());
  EXPECT_EQ(raised.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(raised.status().field(), "messages");
  EXPECT_EQ(raised.status().message(), "roles must alternate");
  const auto large = Render("{{ raise_exception('x' * 100000) }}");
  EXPECT_EQ(large.status().message(), std::string(300, 'x'));
  const auto failed = Render("\n{{ messages[0].a.b }}");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(failed.status().message(), HasSubstr("line 2"));
}

TEST(ChatTemplate, RefusesWhatDoesNotParse) {
  for (const std::string source :
       {"{{", "{% if %}", "{% for %}", "\n{% nonsense %}", "{% include 'x' %}",
        "{% import 'x' as y %}", "{% extends 'x' %}", "{{ '\\ud800' }}", "\xFF", "{% endif %}"}) {
    const auto compiled = ChatTemplate::Compile(source, {});
    ASSERT_FALSE(compiled.ok()) << source;
    EXPECT_EQ(compiled.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(compiled.status().field(), "chat_template");
  }
  const std::string large(ChatTemplate::kSourceBytesMax + 1, 'a');
  EXPECT_EQ(ChatTemplate::Compile(large, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(ChatTemplate::Compile("a", {"", "", "yesterday"}).status().code(),
            Code::kInvalidArgument);
}

TEST(ChatTemplate, RefusesMessagesThatAreNotUtf8) {
  const auto text = Render("{{ messages }}", {{"user", "\xFF", ""}});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(text.status().field(), "messages");
}

TEST(ChatTemplate, StopsAtTheOutputLimit) {
  const auto text =
      Render("{% set x = 'a' * 1000000 %}{% for i in range(17) %}{{ x }}{% endfor %}");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), Code::kInternal);
  EXPECT_THAT(text.status().message(), HasSubstr("16777216 bytes"));
}

std::string Repeat(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// Each of these took seconds to forever, gigabytes, or the stack, before its guard was there.
TEST(ChatTemplate, EndsHostileTemplatesWithAnError) {
  const std::string grow = "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}";
  const struct {
    const char* name;
    std::string source;
  } cases[] = {
      {"loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"},
      {"large text", "{{ 'a' * 1000000000 }}"},
      {"large range", "{{ range(1000000000)|list }}"},
      {"large join", "{{ range(99999)|join('a' * 99999) }}"},
      {"large replace", "{{ ('a' * 99999)|replace('a', 'a' * 99999) }}"},
      {"large replace method", "{{ ('a' * 99999).replace('', 'a' * 99999) }}"},
      {"large width", "{{ '{:1000000000}'.format(1) }}"},
      {"large list", "{{ [1] * 1000000000 }}"},
      {"large list on the right", "{{ 1000000000 * [1] }}"},
      {"doubling text", grow + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}"},
      {"doubling list", grow + "{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}"},
      {"doubling by macro",
       "{% macro f(x, n) %}{% if n %}{{ f(x + x, n - 1) }}{% else %}{{ x|length }}{% endif %}"
       "{% endmacro %}{{ f([1], 90) }}"},
      {"doubling by loop", "{% for y in [[1]] %}" + Repeat("{% for y in [y + y] %}", 60) +
                               "{{ y|length }}" + Repeat("{% endfor %}", 61)},
      {"nested list", grow + "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}"},
      {"nested map", grow + "{% set ns.x = {'a': ns.x} %}{% endfor %}{{ ns.x == ns.x }}"},
      {"nested by text", "{% set x = [] %}" + Repeat("{% set x = [x] %}", 50000) + "{{ x }}"},
      {"shared parts", grow + "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"},
      {"a cycle", "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"},
      {"a cycle in a list", "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns == ns.x }}"},
      {"recursion", "{% macro f(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}"},
      {"recursive loop", "{% for a in [[]] recursive %}{{ loop([a]) }}{% endfor %}"},
      {"comparing long texts",
       "{% set x = 'a' * 999999 %}{% set y = x ~ 'b' %}{% set x = x ~ 'c' %}"
       "{% for i in range(99999) %}{% if x == y %}{% endif %}{% endfor %}"},
      {"indexing long texts",
       "{% set x = 'é' * 999999 %}{% for i in range(99999) %}"
       "{% set z = x[999998] %}{% endfor %}"},
      {"hidden meter", "{% set __meter = 1 %}{% set a = 1 %}"},
      {"parentheses", "{{ " + Repeat("(", 60000) + "1" + Repeat(")", 60000) + " }}"},
      {"attributes", "{{ a" + Repeat(".b", 60000) + " }}"},
      {"filters", "{{ 'a'" + Repeat("|trim", 60000) + " }}"},
      {"sums", "{{ 1" + Repeat("+1", 60000) + " }}"},
      {"negations", "{{ " + Repeat("not ", 60000) + "1 }}"},
      {"conditions", "{{ " + Repeat("1 if 1 else ", 60000) + "1 }}"},
      {"elifs", "{% if 1 %}" + Repeat("{% elif 1 %}", 60000) + "{% endif %}"},
      {"ifs", Repeat("{% if 1 %}", 40000) + Repeat("{% endif %}", 40000)},
  };
  for (const auto& item : cases) {
    const auto text = Render(item.source);
    ASSERT_FALSE(text.ok()) << item.name << ": " << text->substr(0, 100);
    EXPECT_LE(text.status().message().size(), 500u) << item.name;
  }
}

TEST(ChatTemplate, TakesLongConversations) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 5000; ++i) messages.push_back({i % 2 ? "assistant" : "user", "hi", ""});
  messages.push_back({"user", std::string(2u << 20, 'x'), ""});
  const auto text = Render(
      "{% set ns = namespace(seen=0, last='') %}{% for m in messages %}{% if m.role == 'user' %}"
      "{% set ns.seen = ns.seen + 1 %}{% set ns.last = m.content %}{% endif %}"
      "{% set content = m.content.strip() %}<|im_start|>{{ m.role ~ '\\n' ~ content }}<|im_end|>\n"
      "{% endfor %}{{ ns.seen }}",
      messages);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_TRUE(text->ends_with("<|im_end|>\n2501"));
}

TEST(ChatTemplate, RendersTheSameFromManyThreads) {
  auto compiled = ChatTemplate::Compile("{% for m in messages %}{{ m.content }}{% endfor %}", {});
  ASSERT_TRUE(compiled.ok());
  std::vector<std::string> texts(4);
  std::vector<base::Thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back("render", [&text, &compiled] {
      for (int i = 0; i < 200; ++i) text = (*compiled)->Render(kMessages, true).value_or("");
    });
  }
  for (base::Thread& thread : threads) thread.Join();
  for (const std::string& text : texts) EXPECT_EQ(text, "Be brief.안녕 <b>");
}

}  // namespace
}  // namespace plumb::text
