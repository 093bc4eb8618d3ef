// model/activation_bits.h
// How finely activations are rounded before each kind of product, the same in every family: part of
// the numerics id. Measured choice: docs/decisions/0001-activation-bits.md.
#pragma once

#include "tensor/activations.h"

namespace plumb::model {

constexpr auto kAttentionBits = tensor::ActivationBits::k16;
constexpr auto kGateUpBits = tensor::ActivationBits::k16;
constexpr auto kDownBits = tensor::ActivationBits::k16;
constexpr auto kLogitsBits = tensor::ActivationBits::k16;

}  // namespace plumb::model
