// model/model.cc
// What a model does whose pages hold all that a sequence needs.
#include "model/model.h"

#include "base/check.h"

namespace plumb::model {

void Model::SaveState(const std::byte*, uint32_t, std::span<std::byte>) const {
  CHECK(false) << "pages suffice for this model";
}

void Model::LoadState(std::span<const std::byte>, uint32_t, std::byte*) const {
  CHECK(false) << "pages suffice for this model";
}

}  // namespace plumb::model
