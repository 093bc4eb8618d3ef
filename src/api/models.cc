// api/models.cc
// See models.h.
#include "api/models.h"

#include <algorithm>

#include "api/json_writer.h"

namespace plumb::api {

namespace {

void WriteModel(JsonWriter& json, const ModelCard& model, std::string_view name) {
  json.BeginObject().Key("id").String(name).Key("object").String("model");
  json.Key("created").Int(model.created).Key("owned_by").String("plumb");
  json.Key("context_length").Uint(model.context_max).EndObject();
}

}  // namespace

std::string ModelListJson(const ModelCard& model) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const std::string& name : model.names) WriteModel(json, model, name);
  json.EndArray().EndObject();
  return out;
}

std::optional<std::string> ModelJson(const ModelCard& model, std::string_view name) {
  if (std::find(model.names.begin(), model.names.end(), name) == model.names.end())
    return std::nullopt;
  std::string out;
  JsonWriter json(out);
  WriteModel(json, model, name);
  return out;
}

}  // namespace plumb::api
