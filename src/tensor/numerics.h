// tensor/numerics.h: the version of the arithmetic and of the KV page format (docs/numerics.md).
// Two processes with equal ids compute equal bits; any change of a rounding or an order changes it.
#pragma once

#include <string_view>

namespace plumb::tensor {

constexpr std::string_view kNumericsId = "p2";

}  // namespace plumb::tensor
