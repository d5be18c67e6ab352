// Windows of images as vectors, and images under projective transforms.

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;
using Ints = std::vector<std::int64_t>;

// The number of windows along an axis.
std::int64_t windows(const InferenceContext& c, std::int64_t in, std::int64_t size,
                     std::int64_t stride, std::int64_t rate) {
  if (size <= 0 || stride <= 0 || rate <= 0) c.fail("ksizes, strides and rates must be positive");
  if (in == kUnknown) return kUnknown;
  if (c.attr<std::string>("padding") == "SAME") return (in + stride - 1) / stride;
  const std::int64_t reach = size + (size - 1) * (rate - 1);
  if (in - reach + stride < 0) {
    c.fail(cat("Computed output size would be negative: windows of ", reach, " on a side of ", in));
  }
  return (in - reach + stride) / stride;
}

// For windows with the axes [batch, spatial…, channels].
void patches_shape(InferenceContext& c, int rank, bool has_rates) {
  c.require_rank(0, rank);
  const PartialShape& in = c.input(0);
  const auto& sizes = c.attr<Ints>("ksizes");
  const auto& strides = c.attr<Ints>("strides");
  const Ints rates = has_rates ? c.attr<Ints>("rates") : Ints(static_cast<std::size_t>(rank), 1);
  const auto all = static_cast<std::size_t>(rank);
  if (sizes.size() != all || strides.size() != all || rates.size() != all) {
    c.fail(cat("ksizes, strides and rates must have ", rank, " elements"));
  }
  Ints dims = {in.dim(0)};
  std::int64_t depth = in.dim(rank - 1);
  for (std::size_t i = 1; i + 1 < all; ++i) {
    dims.push_back(windows(c, in.dim(static_cast<int>(i)), sizes[i], strides[i], rates[i]));
    depth = internal::multiply_sizes(depth, sizes[i]);
  }
  dims.push_back(depth);
  c.set_output(0, PartialShape(std::move(dims)));
}

void image_patches_shape(InferenceContext& c) { patches_shape(c, 4, true); }
void volume_patches_shape(InferenceContext& c) { patches_shape(c, 5, false); }

// The patches of an image of its own positions, counted from 1, say where each value came from;
// those of the padding say 0.
void patches_grad(GradientContext& g, int spatial) {
  if (!g.needs(0)) return;
  const Tensor sizes = shape(g.input(0));
  const Tensor positions = reduce_prod(slice(sizes, {1}, {spatial}));
  const Tensor batch = index(sizes, {0}), depth = index(sizes, {spatial + 1});
  const Tensor count = range(Tensor(1), positions + 1, Tensor(1));
  const Tensor one = internal::int_vector({1}, DType::kInt32);
  const Tensor map =
      reshape(count, op1("ConcatV2", {one, slice(sizes, {1}, {spatial}), one, Tensor(0)}));
  AttrMap attrs = g.attrs();
  attrs.erase("T");
  const Tensor from = reshape(op1(g.op().name, {map}, attrs), {-1});
  const Tensor values =
      transpose(reshape(g.grad(), op1("Pack", {batch, size(from), depth})), {1, 0, 2});
  const Tensor sums = math::unsorted_segment_sum(values, from, positions + 1);
  const Tensor image = slice(sums, {1, 0, 0}, {-1, -1, -1});  // without the padding
  g.set(0, reshape(transpose(image, {1, 0, 2}), sizes));
}

void image_patches_grad(GradientContext& g) { patches_grad(g, 2); }
void volume_patches_grad(GradientContext& g) { patches_grad(g, 3); }

void transform_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 2);
  c.require_rank(2, 1);
  c.merge_dim(c.input(1).dim(1), 8, "a transform");
  c.merge_dim(c.input(2).dim(0), 2, "output_shape");
  if (c.num_inputs() == 4) c.require_rank(3, 0);
  std::int64_t height = kUnknown, width = kUnknown;
  if (const auto size = c.input_ints(2)) {
    height = (*size)[0];
    width = (*size)[1];
    if (height < 0 || width < 0) c.fail("output_shape must not be negative");
  }
  c.set_output(0, PartialShape({c.input(0).dim(0), height, width, c.input(0).dim(3)}));
}

// Like TensorFlow has it: the gradient seen through the inverse transforms, which is not quite the
// transpose where the transform shrinks or stretches. Needs them to be invertible.
void transform_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor& transforms = g.input(1);
  const Tensor one = ones_like(slice(transforms, {0, 0}, {-1, 1}));
  const Tensor matrices = reshape(concat({transforms, one}, 1), {-1, 3, 3});
  const Tensor inverse = reshape(linalg::inv(matrices), {-1, 9});
  const Tensor flat = slice(inverse / slice(inverse, {0, 8}, {-1, 1}), {0, 0}, {-1, 8});
  std::vector<Tensor> inputs{g.grad(), flat, slice(shape(g.input(0)), {1}, {2})};
  if (g.num_inputs() > 3) inputs.push_back(Tensor(0.0f));
  const auto made = raw_op(g.op().name, inputs,
                           {{"interpolation", g.attr<std::string>("interpolation")},
                            {"fill_mode", g.attr<std::string>("fill_mode")}});
  g.set(0, made[0]);
}

const OpRegistration kPatches{
    {.name = "ExtractImagePatches",
     .inputs = "images: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; "
              "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
              "uint32, uint64, complex64, complex128, bool}; padding: {'SAME', 'VALID'}",
     .shape = image_patches_shape,
     .gradient = image_patches_grad,
     .doc = "The windows of images, each as a vector along the last axis."}};
const OpRegistration kVolumes{
    {.name = "ExtractVolumePatches",
     .inputs = "input: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 5; strides: list(int) >= 5; "
              "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64}; padding: {'SAME', 'VALID'}",
     .shape = volume_patches_shape,
     .gradient = volume_patches_grad,
     .doc = "The windows of volumes, each as a vector along the last axis."}};

#define TANDEM_TRANSFORM                                          \
  "dtype: {uint8, int32, int64, half, bfloat16, float, double}; " \
  "interpolation: string; fill_mode: string = 'CONSTANT'"
const OpRegistration kTransformV2{
    {.name = "ImageProjectiveTransformV2",
     .inputs = "images: dtype, transforms: float, output_shape: int32",
     .outputs = "transformed_images: dtype",
     .attrs = TANDEM_TRANSFORM,
     .shape = transform_shape,
     .gradient = transform_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "Images seen through projective transforms, zero where there is none."}};
const OpRegistration kTransformV3{
    {.name = "ImageProjectiveTransformV3",
     .inputs = "images: dtype, transforms: float, output_shape: int32, fill_value: float",
     .outputs = "transformed_images: dtype",
     .attrs = TANDEM_TRANSFORM,
     .shape = transform_shape,
     .gradient = transform_grad,
     .traits = {.host_inputs = 0b1100},
     .doc = "ImageProjectiveTransformV2 with the value where there is no image."}};

}  // namespace

namespace image {

Tensor extract_patches(Tensor images, const std::vector<std::int64_t>& sizes,
                       const std::vector<std::int64_t>& strides,
                       const std::vector<std::int64_t>& rates, StringView padding) {
  return call1(kPatches, {std::move(images)},
               {{"ksizes", sizes}, {"strides", strides}, {"rates", rates}, {"padding", padding}});
}

}  // namespace image
}  // namespace tandem
