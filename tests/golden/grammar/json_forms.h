// tests/golden/grammar/json_forms.h
// One JSON value as the texts that could stand for it in an answer: compact or with a space after
// ',' and ':', members in any order, whole numbers with and without a fraction. A schema that is
// enforced takes a valid instance in some order of its members (docs/structured_output.md) in both
// spacings, and an invalid one in no form at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb::golden {

enum class Spacing { kCompact, kSpaced };
enum class Numbers { kWhole, kWritten };  // 1 for 1.0; as nlohmann writes it

// At most `count_max` texts, one for each order of members.
std::vector<std::string> Forms(const nlohmann::ordered_json& value, Spacing spacing,
                               Numbers numbers, size_t count_max);

// Whether a text can hold every string of the value without \u escapes.
bool Writable(const nlohmann::ordered_json& value);

}  // namespace plumb::golden
