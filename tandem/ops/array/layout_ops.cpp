#include "tandem/ops/layout_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/internal/fuse_attention.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

// ---- Transpose ----

// The permutation as axes from the front; fails unless it is one of `rank` axes.
std::vector<int> checked_permutation(const InferenceContext& c,
                                     const std::vector<std::int64_t>& perm, int rank) {
  if (static_cast<int>(perm.size()) != rank) {
    c.fail(cat("transpose expects a vector of size ", rank, ". But input(1) is a vector of size ",
               perm.size()));
  }
  std::vector<int> axes;
  std::vector<bool> seen(perm.size(), false);
  for (std::int64_t p : perm) {
    const int axis = internal::axis_in(c, p, rank, "permutation entry");
    if (seen[static_cast<std::size_t>(axis)]) {
      c.fail(cat("axis ", axis, " occurs twice in the permutation."));
    }
    seen[static_cast<std::size_t>(axis)] = true;
    axes.push_back(axis);
  }
  return axes;
}

void transpose_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  const PartialShape& in = c.input(0);
  const auto perm = c.input_ints(1);
  if (!in.has_rank()) {
    const auto length = c.input(1).dim(0);
    return c.set_output(0, length < 0 || length > Shape::kMaxRank
                               ? PartialShape::unknown()
                               : PartialShape::unknown_of_rank(static_cast<int>(length)));
  }
  if (!perm) return c.set_output(0, PartialShape::unknown_of_rank(in.rank()));
  std::vector<std::int64_t> dims;
  for (int axis : checked_permutation(c, *perm, in.rank())) dims.push_back(in.dim(axis));
  c.set_output(0, PartialShape(std::move(dims)));
}

Tensor inverse_of(const Tensor& perm) {
  auto known = internal::known_ints(perm);
  if (!known) return math::invert_permutation(perm);
  std::vector<std::int64_t> inverse(known->size());
  for (std::size_t i = 0; i < known->size(); ++i) {
    const std::int64_t p = (*known)[i];
    inverse[static_cast<std::size_t>(p < 0 ? p + static_cast<std::int64_t>(known->size()) : p)] =
        static_cast<std::int64_t>(i);
  }
  return internal::int_vector(inverse, perm.dtype());
}

void transpose_grad(GradientContext& g) { g.set(0, transpose(g.grad(), inverse_of(g.input(1)))); }

void conjugate_transpose_grad(GradientContext& g) {
  g.set(0, op1("ConjugateTranspose", {g.grad(), inverse_of(g.input(1))}));
}

// Transpose of Transpose is one Transpose, or nothing at all.
bool join_transposes(RewriteContext& r) {
  Node& node = r.node();
  const Array* outer = r.constant(1);
  const Output in = node.inputs()[0];
  if (!outer || in.node->op().name != "Transpose" || !in.node->control_inputs().empty() ||
      !node.control_inputs().empty()) {
    return false;
  }
  RewriteContext inner_context(r.graph(), r.ops(), *in.node);
  const Array* inner = inner_context.constant(1);
  if (!inner || inner->num_elements() != outer->num_elements()) return false;
  const auto at = [](const Array& a, std::int64_t i) {
    const std::int64_t v =
        a.dtype() == DType::kInt32 ? a.data<std::int32_t>()[i] : a.data<std::int64_t>()[i];
    return v < 0 ? v + a.num_elements() : v;
  };
  for (std::int64_t i = 0; i < outer->num_elements(); ++i) {
    if (at(*inner, at(*outer, i)) != i) return false;
  }
  return r.replace_with(in.node->inputs()[0]);
}

// ---- Reverse, Roll ----

void reverse_grad(GradientContext& g) { g.set(0, op1("Reverse", {g.grad(), g.input(1)})); }

void reverse_v2_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  if (const auto axes = c.input_ints(1); axes && c.input(0).has_rank()) {
    std::vector<bool> seen(c.input(0).dims().size(), false);
    for (std::int64_t a : *axes) {
      const int axis = internal::axis_in(c, a, c.input(0).rank());
      if (seen[static_cast<std::size_t>(axis)]) {
        c.fail(cat("axis ", axis, " specified more than once."));
      }
      seen[static_cast<std::size_t>(axis)] = true;
    }
  }
  c.set_output(0, c.input(0));
}

void reverse_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  if (c.input(0).has_rank()) c.merge_dim(c.input(0).rank(), c.input(1).dim(0), "rank and dims");
  c.set_output(0, c.input(0));
}

void reverse_v2_grad(GradientContext& g) { g.set(0, reverse(g.grad(), g.input(1))); }

void reverse_sequence_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  PartialShape out = c.input(0);
  if (out.has_rank()) {
    const auto axis = [&](const char* name) {
      const auto value = c.attr<std::int64_t>(name);
      if (value < 0 || value >= out.rank()) {
        c.fail(cat(name, " ", value, " must be in [0, ", out.rank(), ")."));
      }
      return static_cast<int>(value);
    };
    axis("seq_dim");
    const int batch = axis("batch_dim");
    out.set_dim(batch,
                c.merge_dim(out.dim(batch), c.input(1).dim(0), "batch size and seq_lengths"));
  }
  c.set_output(0, std::move(out));
}

void reverse_sequence_grad(GradientContext& g) {
  g.set(0, reverse_sequence(g.grad(), g.input(1), g.attr<std::int64_t>("seq_dim"),
                            g.attr<std::int64_t>("batch_dim")));
}

void roll_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  for (int i : {1, 2}) {
    if (c.input(i).has_rank() && c.input(i).rank() > 1) {
      c.fail(cat("input ", i, " must be a scalar or a vector but has shape ", c.input(i), "."));
    }
  }
  c.set_output(0, c.input(0));
}

void roll_grad(GradientContext& g) { g.set(0, op1("Roll", {g.grad(), -g.input(1), g.input(2)})); }

// ---- Blocks between space and batch or channels ----

std::int64_t divided(const InferenceContext& c, std::int64_t size, std::int64_t by,
                     const char* what) {
  if (size == kUnknown) return kUnknown;
  if (size % by != 0)
    c.fail(cat(what, " ", size, " must be divisible by the block size ", by, "."));
  return size / by;
}

// Axis 0 and the blocks' axes change; all from constants, else unknown.
void blocks_shape(InferenceContext& c, bool to_batch) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 1);
  c.require_rank(2, 2);
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (c.input(1).has_rank() && c.input(1).dim(0) == 0) return c.set_output(0, in);
  const auto blocks = c.input_ints(1);
  const auto margins = c.input_ints(2);
  if (!blocks || !margins) return c.set_output(0, PartialShape::unknown_of_rank(in.rank()));
  if (static_cast<int>(blocks->size()) + 1 > in.rank() || margins->size() != 2 * blocks->size()) {
    c.fail(cat("block_shape of ", blocks->size(), " sizes and margins ", c.input(2),
               " do not fit the input of shape ", in, "."));
  }
  PartialShape out = in;
  std::int64_t product = 1;
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const std::int64_t block = (*blocks)[i];
    const std::int64_t before = (*margins)[2 * i];
    const std::int64_t after = (*margins)[2 * i + 1];
    if (block < 1)
      c.fail(cat("All values in block_shape must be positive but one is ", block, "."));
    if (before < 0 || after < 0) c.fail("Margins must be non-negative.");
    product = checked_multiply(product, block);
    const int axis = static_cast<int>(i) + 1;
    const std::int64_t size = in.dim(axis);
    if (to_batch) {
      const std::int64_t padded = internal::add_sizes(size, before + after);
      out.set_dim(axis, divided(c, padded, block, "padded size"));
    } else {
      const std::int64_t whole = internal::multiply_sizes(size, block);
      const std::int64_t cropped = whole == kUnknown ? kUnknown : whole - before - after;
      if (cropped != kUnknown && cropped < 0) c.fail(cat("crops exceed the size ", whole, "."));
      out.set_dim(axis, cropped);
    }
  }
  out.set_dim(0, to_batch ? internal::multiply_sizes(in.dim(0), product)
                          : divided(c, in.dim(0), product, "batch size"));
  c.set_output(0, std::move(out));
}

void space_to_batch_shape(InferenceContext& c) { blocks_shape(c, true); }
void batch_to_space_shape(InferenceContext& c) { blocks_shape(c, false); }

void space_to_batch_grad(GradientContext& g) {
  g.set(0, batch_to_space_nd(g.grad(), g.input(1), g.input(2)));
}
void batch_to_space_grad(GradientContext& g) {
  g.set(0, space_to_batch_nd(g.grad(), g.input(1), g.input(2)));
}

void depth_blocks_shape(InferenceContext& c, bool to_depth) {
  const auto& format = c.attr<std::string>("data_format");
  const std::int64_t block = c.attr<std::int64_t>("block_size");
  const std::int64_t pixels = checked_multiply(block, block);  // of a block
  if (format == "NCHW_VECT_C") c.fail("data_format NCHW_VECT_C is not supported on the CPU.");
  c.require_rank(0, 4);
  if (!c.input(0).has_rank()) return c.set_output(0, PartialShape::unknown_of_rank(4));
  const int channels = format == "NHWC" ? 3 : 1;
  const int height = format == "NHWC" ? 1 : 2;
  PartialShape out = c.input(0);
  for (int axis : {height, height + 1}) {
    out.set_dim(axis, to_depth ? divided(c, out.dim(axis), block, "height or width")
                               : internal::multiply_sizes(out.dim(axis), block));
  }
  out.set_dim(channels, to_depth ? internal::multiply_sizes(out.dim(channels), pixels)
                                 : divided(c, out.dim(channels), pixels, "depth"));
  c.set_output(0, std::move(out));
}

void space_to_depth_shape(InferenceContext& c) { depth_blocks_shape(c, true); }
void depth_to_space_shape(InferenceContext& c) { depth_blocks_shape(c, false); }

void space_to_depth_grad(GradientContext& g) {
  g.set(0, nn::depth_to_space(g.grad(), g.attr<std::int64_t>("block_size"),
                              g.attr<std::string>("data_format")));
}
void depth_to_space_grad(GradientContext& g) {
  g.set(0, nn::space_to_depth(g.grad(), g.attr<std::int64_t>("block_size"),
                              g.attr<std::string>("data_format")));
}

const OpRegistration kTranspose{{.name = "Transpose",
                                 .inputs = "x: T, perm: Tperm",
                                 .outputs = "y: T",
                                 .attrs = "T: type; Tperm: index = int32",
                                 .shape = transpose_shape,
                                 .gradient = transpose_grad,
                                 .traits = {.host_inputs = 0b10},
                                 .rewrite = join_transposes,
                                 .fuse = internal::fuse_attention_transpose,
                                 .doc = "Axis i of the result is axis perm[i] of x."}};

const OpRegistration kConjugateTranspose{
    {.name = "ConjugateTranspose",
     .inputs = "x: T, perm: Tperm",
     .outputs = "y: T",
     .attrs = "T: type; Tperm: index = int32",
     .shape = transpose_shape,
     .gradient = conjugate_transpose_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "Axis i of the result is axis perm[i] of x, complex elements conjugated."}};

const OpRegistration kReverse{
    {.name = "Reverse",
     .inputs = "tensor: T, dims: bool",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, "
              "float, double, complex64, complex128, string}",
     .shape = reverse_shape,
     .gradient = reverse_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "Backwards along the axes for which dims is true."}};

const OpRegistration kReverseV2{
    {.name = "ReverseV2",
     .inputs = "tensor: T, axis: Tidx",
     .outputs = "output: T",
     .attrs = "Tidx: index = int32; T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, "
              "bool, bfloat16, half, float, double, complex64, complex128, string}",
     .shape = reverse_v2_shape,
     .gradient = reverse_v2_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "Backwards along the axes named; none may be named twice."}};

const OpRegistration kReverseSequence{
    {.name = "ReverseSequence",
     .inputs = "input: T, seq_lengths: Tlen",
     .outputs = "output: T",
     .attrs = "seq_dim: int; batch_dim: int = 0; T: type; Tlen: index = int64",
     .shape = reverse_sequence_shape,
     .gradient = reverse_sequence_grad,
     .doc = "The first seq_lengths[b] elements along seq_dim backwards, for each b along "
            "batch_dim."}};

const OpRegistration kRoll{{.name = "Roll",
                            .inputs = "input: T, shift: Tshift, axis: Taxis",
                            .outputs = "output: T",
                            .attrs = "T: type; Tshift: index; Taxis: index",
                            .shape = roll_shape,
                            .gradient = roll_grad,
                            .traits = {.host_inputs = 0b110},
                            .doc =
                                "Shifted by shift[i] positions along axis[i]; what falls off comes "
                                "in at the other end."}};

const OpRegistration kSpaceToBatchND{
    {.name = "SpaceToBatchND",
     .inputs = "input: T, block_shape: Tblock_shape, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type; Tblock_shape: index = int32; Tpaddings: index = int32",
     .shape = space_to_batch_shape,
     .gradient = space_to_batch_grad,
     .traits = {.host_inputs = 0b110},
     .doc = "Pads the axes from 1 on with zeros and moves their blocks to the batch axis."}};

const OpRegistration kBatchToSpaceND{
    {.name = "BatchToSpaceND",
     .inputs = "input: T, block_shape: Tblock_shape, crops: Tcrops",
     .outputs = "output: T",
     .attrs = "T: type; Tblock_shape: index = int32; Tcrops: index = int32",
     .shape = batch_to_space_shape,
     .gradient = batch_to_space_grad,
     .traits = {.host_inputs = 0b110},
     .doc = "Moves parts of the batch axis to blocks of the axes from 1 on and crops them."}};

const OpRegistration kSpaceToDepth{
    {.name = "SpaceToDepth",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs =
         "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .shape = space_to_depth_shape,
     .gradient = space_to_depth_grad,
     .doc = "Moves blocks of height and width to the channels."}};

const OpRegistration kDepthToSpace{
    {.name = "DepthToSpace",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs =
         "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .shape = depth_to_space_shape,
     .gradient = depth_to_space_grad,
     .doc = "Moves channels to blocks of height and width."}};

// The axes as a tensor that ends with these two, for a value of unknown rank too.
Tensor last_two_swapped(const Tensor& a) {
  const int rank = a.rank();
  if (rank >= 2) {
    std::vector<std::int64_t> perm;
    for (int i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
    return internal::int_vector(perm, DType::kInt32);
  }
  if (rank >= 0) {
    throw InvalidArgumentError(
        cat("Argument `a` must be a (batch) matrix with rank >= 2, but has "
            "shape ",
            a.partial_shape(), "."));
  }
  const Tensor r = tandem::rank(a);
  const Tensor leading = range(Tensor(0), r - Tensor(2), Tensor(1));
  const Tensor ends = stack({r - Tensor(1), r - Tensor(2)});
  return op1("ConcatV2", {leading, ends, Tensor(0)});
}

Tensor reversed_axes(const Tensor& a) {
  if (const int rank = a.rank(); rank >= 0) {
    std::vector<std::int64_t> perm;
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
    return internal::int_vector(perm, DType::kInt32);
  }
  const Tensor last = tandem::rank(a) - Tensor(1);
  return range(last, Tensor(-1), Tensor(-1));
}

}  // namespace

Tensor transpose(Tensor a, const IntList& perm) {
  // Without axes the empty permutation is right for scalars alone: read it as "all in reverse
  // order".
  Tensor axes = perm.empty() ? reversed_axes(a) : perm.tensor();
  return call1(kTranspose, {std::move(a), std::move(axes)});
}

Tensor matrix_transpose(Tensor a) {
  Tensor axes = last_two_swapped(a);
  return call1(kTranspose, {std::move(a), std::move(axes)});
}

Tensor reverse(Tensor tensor, const IntList& axis) {
  return call1(kReverseV2, {std::move(tensor), axis.tensor()});
}

Tensor reverse_sequence(Tensor input, Tensor seq_lengths, std::int64_t seq_axis,
                        std::int64_t batch_axis) {
  return call1(kReverseSequence, {std::move(input), std::move(seq_lengths)},
               {{"seq_dim", seq_axis}, {"batch_dim", batch_axis}});
}

Tensor roll(Tensor input, const IntList& shift, const IntList& axis) {
  return call1(kRoll, {std::move(input), shift.tensor(), axis.tensor()});
}

Tensor space_to_batch_nd(Tensor input, const IntList& block_shape, Tensor paddings) {
  return call1(kSpaceToBatchND, {std::move(input), block_shape.tensor(), std::move(paddings)});
}

Tensor batch_to_space_nd(Tensor input, const IntList& block_shape, Tensor crops) {
  return call1(kBatchToSpaceND, {std::move(input), block_shape.tensor(), std::move(crops)});
}

Tensor nn::space_to_depth(Tensor input, std::int64_t block_size, const String& data_format) {
  return call1(kSpaceToDepth, {std::move(input)},
               {{"block_size", block_size}, {"data_format", data_format}});
}

Tensor nn::depth_to_space(Tensor input, std::int64_t block_size, const String& data_format) {
  return call1(kDepthToSpace, {std::move(input)},
               {{"block_size", block_size}, {"data_format", data_format}});
}

}  // namespace tandem
