// tensor/activations.cc: sizes of the scratch.
// Sizes: 32-bit products of rows and groups cannot wrap, as they are formed in 64 bits.
#include "tensor/activations.h"

#include "tensor/packed_matrix.h"

namespace plumb::tensor {

base::Result<Activations> Activations::Allocate(uint32_t rows_max, uint32_t inputs_max) {
  Activations activations;
  activations.rows_max_ = rows_max;
  activations.inputs_max_ = inputs_max;
  const uint64_t groups = (uint64_t{inputs_max} + kGroupInputs - 1) / kGroupInputs * rows_max;
  if (groups > UINT64_MAX / 64) {
    return base::Status(base::Code::kOverloaded, "no memory for activations; lower rows per step");
  }
  ASSIGN_OR_RETURN(activations.quants_,
                   AlignedBuffer::Allocate(groups * kGroupInputs * sizeof(int16_t)));
  ASSIGN_OR_RETURN(activations.groups_, AlignedBuffer::Allocate(groups * sizeof(ActivationGroup)));
  ASSIGN_OR_RETURN(activations.scales_,
                   AlignedBuffer::Allocate(uint64_t{rows_max} * sizeof(float)));
  return activations;
}

}  // namespace plumb::tensor
