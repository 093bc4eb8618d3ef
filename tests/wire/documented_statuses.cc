// tests/wire/documented_statuses.cc
// See documented_statuses.h.
#include "documented_statuses.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "api/openapi.h"

namespace plumb::wire {

namespace {

std::vector<std::string> Segments(const std::string& path) {
  std::istringstream in(path);
  std::vector<std::string> segments;
  for (std::string segment; std::getline(in, segment, '/');) segments.push_back(segment);
  return segments;
}

// What a message may get of which no operation was looked for yet.
constexpr int kOfEveryMessage[] = {408, 414, 417, 431, 505};

// Whether the path is one of the template's. A model's name may hold slashes.
bool Matches(const std::vector<std::string>& given, const std::vector<std::string>& wanted) {
  if (given.size() < wanted.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].starts_with('{') && wanted[i] != given[i]) return false;
  return given.size() == wanted.size() || wanted.back() == "{name}";
}

}  // namespace

DocumentedStatuses::DocumentedStatuses()
    : paths_(nlohmann::json::parse(api::OpenApiDocument({.version = "0", .key_needed = true}))
                 .at("paths")) {}

const nlohmann::json* DocumentedStatuses::Find(const std::string& path) const {
  if (const auto exact = paths_.find(path); exact != paths_.end()) return &*exact;
  const std::vector<std::string> given = Segments(path);
  for (const auto& [pattern, item] : paths_.items())
    if (pattern.find('{') != pattern.npos && Matches(given, Segments(pattern))) return &item;
  return nullptr;
}

bool DocumentedStatuses::Allow(net::HttpMethod method, std::string path, int status) const {
  const nlohmann::json* item = Find(path.substr(0, path.find('?')));
  if (method == net::HttpMethod::kHead) method = net::HttpMethod::kGet;
  std::string name(net::MethodName(method));
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  if (item == nullptr || !item->contains(name)) return true;
  if (std::ranges::find(kOfEveryMessage, status) != std::end(kOfEveryMessage)) return true;
  return item->at(name).at("responses").contains(std::to_string(status));
}

}  // namespace plumb::wire
