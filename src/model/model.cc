// model/model.cc: the defaults of model/model.h.
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
