// api/models_test.cc
// Pages of the list of models, as Anthropic's clients ask for them.
#include "api/models.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb::api {
namespace {

using nlohmann::json;

std::vector<std::string> Ids(const json& list) {
  std::vector<std::string> ids;
  for (const json& model : list["data"]) ids.push_back(model["id"]);
  return ids;
}

TEST(ModelListJson, GivesThePageThatIsAskedFor) {
  const ModelCard card{.names = {"a", "b", "c", "d"}};
  const struct {
    const char* query;
    std::vector<std::string> ids;
    bool has_more;
  } cases[] = {
      {"", {"a", "b", "c", "d"}, false},
      {"limit=4", {"a", "b", "c", "d"}, false},
      {"limit=3", {"a", "b", "c"}, true},
      {"limit=1&after_id=b", {"c"}, true},
      {"limit=2&after_id=b", {"c", "d"}, false},
      {"after_id=d", {}, false},
      {"limit=2&before_id=d", {"b", "c"}, true},
      {"limit=3&before_id=d", {"a", "b", "c"}, false},
      {"before_id=a", {}, false},
  };
  for (const auto& [query, ids, has_more] : cases) {
    SCOPED_TRACE(query);
    const json list = json::parse(ModelListJson(card, ModelForm::kAnthropic, query).value());
    EXPECT_EQ(Ids(list), ids);
    EXPECT_EQ(list["has_more"], has_more);
    EXPECT_EQ(list["first_id"], ids.empty() ? json() : json(ids.front()));
    EXPECT_EQ(list["last_id"], ids.empty() ? json() : json(ids.back()));
    EXPECT_EQ(Ids(json::parse(ModelListJson(card, ModelForm::kOpenAi, query).value())), card.names);
  }
}

TEST(ModelListJson, RefusesWhatIsNoPage) {
  const ModelCard card{.names = {"a", "b"}};
  for (const auto& [query, field] :
       std::vector<std::pair<std::string, std::string>>{{"limit=0", "limit"},
                                                        {"limit=1001", "limit"},
                                                        {"limit=x", "limit"},
                                                        {"after_id=c", "after_id"},
                                                        {"after_id=", "after_id"},
                                                        {"before_id=c", "before_id"},
                                                        {"after_id=a&before_id=b", "before_id"}}) {
    const auto list = ModelListJson(card, ModelForm::kAnthropic, query);
    ASSERT_FALSE(list.ok()) << query;
    EXPECT_EQ(list.status().field(), field) << query;
  }
}

}  // namespace
}  // namespace plumb::api
