// Blocks of images as a batch with one block size, and indices from one data format to another.
// Called by name: space_to_batch_nd and batch_to_space_nd are the functions to use.

#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

// A side with what is added, or cut off, before and after it; unknown where either is.
std::int64_t changed(const InferenceContext& c, std::int64_t side, int axis, int sign) {
  const auto amounts = c.input_ints(1);
  if (!amounts || amounts->size() != 4) return kUnknown;
  const std::int64_t before = (*amounts)[static_cast<std::size_t>(2 * axis)];
  const std::int64_t after = (*amounts)[static_cast<std::size_t>(2 * axis + 1)];
  if (before < 0 || after < 0) c.fail("paddings and crops must not be negative");
  return side == kUnknown ? kUnknown : side + sign * (before + after);
}

void amounts_are_2_by_2(const InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 2);
  c.merge_dim(c.input(1).dim(0), 2, "the rows of paddings or crops");
  c.merge_dim(c.input(1).dim(1), 2, "the columns of paddings or crops");
}

void space_to_batch_shape(InferenceContext& c) {
  amounts_are_2_by_2(c);
  const auto block = c.attr<std::int64_t>("block_size");
  const PartialShape& in = c.input(0);
  std::vector<std::int64_t> dims = {
      internal::multiply_sizes(in.dim(0), checked_multiply(block, block))};
  for (int i = 0; i < 2; ++i) {
    const std::int64_t side = changed(c, in.dim(1 + i), i, 1);
    if (side != kUnknown && side % block != 0) {
      c.fail(cat("a padded side of ", side, " is no multiple of the block size ", block));
    }
    dims.push_back(side == kUnknown ? kUnknown : side / block);
  }
  dims.push_back(in.dim(3));
  c.set_output(0, PartialShape(std::move(dims)));
}

void batch_to_space_shape(InferenceContext& c) {
  amounts_are_2_by_2(c);
  const auto block = c.attr<std::int64_t>("block_size");
  const PartialShape& in = c.input(0);
  const std::int64_t blocks = checked_multiply(block, block);
  if (in.dim(0) != kUnknown && in.dim(0) % blocks != 0) {
    c.fail(cat("the batch of ", in.dim(0), " is no multiple of ", blocks));
  }
  std::vector<std::int64_t> dims = {in.dim(0) == kUnknown ? kUnknown : in.dim(0) / blocks};
  for (int i = 0; i < 2; ++i) {
    const std::int64_t side = changed(c, internal::multiply_sizes(in.dim(1 + i), block), i, -1);
    if (side != kUnknown && side < 0) c.fail("the crops are larger than the image");
    dims.push_back(side);
  }
  dims.push_back(in.dim(3));
  c.set_output(0, PartialShape(std::move(dims)));
}

void space_to_batch_grad(GradientContext& g) {
  g.set(0,
        op1("BatchToSpace", {g.grad(), g.input(1)}, {{"block_size", *g.find_attr("block_size")}}));
}
void batch_to_space_grad(GradientContext& g) {
  g.set(0,
        op1("SpaceToBatch", {g.grad(), g.input(1)}, {{"block_size", *g.find_attr("block_size")}}));
}

const OpRegistration kSpaceToBatch{
    {.name = "SpaceToBatch",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2",
     .shape = space_to_batch_shape,
     .gradient = space_to_batch_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "Images padded, then cut into blocks whose positions become part of the batch."}};
const OpRegistration kBatchToSpace{
    {.name = "BatchToSpace",
     .inputs = "input: T, crops: Tidx",
     .outputs = "output: T",
     .attrs = "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32",
     .shape = batch_to_space_shape,
     .gradient = batch_to_space_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "The reverse of SpaceToBatch."}};

#define TANDEM_FORMATS \
  "T: {int32, int64} = int32; src_format: string = 'NHWC'; dst_format: string = 'NCHW'"
const OpRegistration kVecPermute{{.name = "DataFormatVecPermute",
                                  .inputs = "x: T",
                                  .outputs = "y: T",
                                  .attrs = TANDEM_FORMATS,
                                  .shape = shapes::unchanged,
                                  .gradient = not_differentiable,
                                  .doc = "Sizes (or pairs) of all axes, or of the spatial ones, in "
                                         "the order of another data format."}};
const OpRegistration kDimMap{{.name = "DataFormatDimMap",
                              .inputs = "x: T",
                              .outputs = "y: T",
                              .attrs = TANDEM_FORMATS,
                              .shape = shapes::unchanged,
                              .gradient = not_differentiable,
                              .doc = "Axes of one data format as axes of another."}};

}  // namespace
}  // namespace tandem
