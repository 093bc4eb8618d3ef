// api/openapi.cc
// See openapi.h. Every other file adds to the paths and components of base.json.
#include "api/openapi.h"

#include <algorithm>
#include <utility>

#include "api/embedded_files.h"
#include "api/json.h"
#include "api/json_writer.h"
#include "base/check.h"

namespace plumb::api {

namespace {

constexpr std::string_view kBase = "base.json";

JsonValue Parsed(const EmbeddedFile& file) {
  auto parsed = ParseJson(file.body);
  CHECK(parsed.ok()) << file.name << ": " << parsed.status().ToString();
  return *std::move(parsed);
}

JsonValue& MemberOf(JsonValue& object, std::string_view name) {
  const auto found = std::ranges::find(object.members, name, &JsonMember::name);
  if (found != object.members.end()) return found->value;
  object.members.push_back({std::string(name), {.kind = JsonKind::kObject}});
  return object.members.back().value;
}

// Objects of both become one; what is no object may stand in one of them alone.
void Merge(JsonValue from, JsonValue& to, size_t depth, std::string_view file) {
  for (JsonMember& member : from.members) {
    JsonValue& place = MemberOf(to, member.name);
    CHECK(depth > 0 || place.members.empty()) << file << " repeats " << member.name;
    if (depth > 0) {
      Merge(std::move(member.value), place, depth - 1, file);
    } else {
      place = std::move(member.value);
    }
  }
}

}  // namespace

std::string OpenApiDocument(const OpenApiFacts& facts) {
  const auto files = OpenApiFiles();
  const auto base = std::ranges::find(files, kBase, &EmbeddedFile::name);
  CHECK(base != files.end()) << "the build left out " << kBase;
  JsonValue document = Parsed(*base);
  for (const EmbeddedFile& file : files) {
    if (file.name == kBase) continue;
    JsonValue part = Parsed(file);
    for (JsonMember& member : part.members) {
      CHECK(member.name == "paths" || member.name == "components") << file.name;
      const size_t depth = member.name == "paths" ? 0 : 1;
      Merge(std::move(member.value), MemberOf(document, member.name), depth, file.name);
    }
  }
  JsonValue& version = MemberOf(MemberOf(document, "info"), "version");
  version = {.kind = JsonKind::kString, .text = facts.version};
  if (!facts.key_needed)
    std::erase_if(document.members, [](const JsonMember& one) { return one.name == "security"; });
  std::string out;
  AppendJson(out, document);
  return out;
}

}  // namespace plumb::api
