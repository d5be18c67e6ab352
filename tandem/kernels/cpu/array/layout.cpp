// Ops that move elements to other places: Transpose, Reverse, Roll, and blocks between space and
// batch or channels.

#include <complex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

// ---- Transpose ----

void transpose(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput perm(c, 1, "perm");
  const int rank = x.rank();
  if (perm.size() != rank || c.input(1).rank() != 1) {
    throw InvalidArgumentError(cat("transpose expects a vector of size ", rank,
                                   ". But input(1) is a vector of size ", perm.size()));
  }
  int axes[Shape::kMaxRank];
  bool seen[Shape::kMaxRank] = {};
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t axis = perm[i] < 0 ? perm[i] + rank : perm[i];
    if (axis < 0 || axis >= rank) {
      throw InvalidArgumentError(cat(perm[i], " is out of range [0 .. ", rank, ")"));
    }
    axes[i] = static_cast<int>(axis);
    seen[axis] = true;
    shape.add_dim(x.shape()[axes[i]]);
  }
  for (int i = 0; i < rank; ++i) {
    if (!seen[i]) throw InvalidArgumentError(cat(i, " is missing from the permutation."));
  }
  Array& out = c.allocate_output(0, shape);
  const Strides from(x.shape());
  const Strides to(shape);
  StridedCopy copy;
  for (int i = 0; i < rank; ++i) copy.add(shape[i], to[i], from[axes[i]]);
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

template <class T>
void conjugate(KernelContext& c) {
  transpose(c);
  Array& out = c.output(0);
  T* data = out.data<T>();
  c.intra_op().parallel_for(out.num_elements(), 1.0, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) data[i] = std::conj(data[i]);
  });
}

// ---- Reverse ----

void reverse_axes(KernelContext& c, const bool* backwards) {
  const Array& x = c.input(0);
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  const Strides strides(x.shape());
  StridedCopy copy;
  std::int64_t offset = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (backwards[i]) offset += (x.shape()[i] - 1) * strides[i];
    copy.add(x.shape()[i], strides[i], backwards[i] ? -strides[i] : strides[i]);
  }
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), element_at(x.raw_data(), x.dtype(), offset));
}

void reverse(KernelContext& c) {
  const Array& dims = c.input(1);
  if (dims.rank() != 1 || dims.num_elements() != c.input(0).rank()) {
    throw InvalidArgumentError(cat("'dims' must be a bool vector of ", c.input(0).rank(),
                                   " elements, one for each axis, but has shape ", dims.shape(),
                                   "."));
  }
  reverse_axes(c, dims.data<bool>());
}

void reverse_v2(KernelContext& c) {
  const int rank = c.input(0).rank();
  const IntInput axes(c, 1, "'axis'");
  if (c.input(1).rank() != 1) {
    throw InvalidArgumentError(
        cat("'axis' must be 1-dimensional, but has shape ", c.input(1).shape()));
  }
  bool backwards[Shape::kMaxRank] = {};
  for (std::int64_t i = 0; i < axes.size(); ++i) {
    const int axis = checked_axis(axes[i], rank, cat("'axis'[", i, "] ="));
    if (backwards[axis]) {
      throw InvalidArgumentError(cat("axis ", axis, " specified more than once."));
    }
    backwards[axis] = true;
  }
  reverse_axes(c, backwards);
}

void reverse_sequence(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput lengths(c, 1, "seq_lens");
  const auto seq_attr = c.attr<std::int64_t>("seq_dim");
  const auto batch_attr = c.attr<std::int64_t>("batch_dim");
  if (seq_attr < 0 || seq_attr >= x.rank() || batch_attr < 0 || batch_attr >= x.rank() ||
      seq_attr == batch_attr) {
    throw InvalidArgumentError(cat("seq_dim ", seq_attr, " and batch_dim ", batch_attr,
                                   " must be two axes of the input of shape ", x.shape(), "."));
  }
  const int seq = static_cast<int>(seq_attr);
  const int batch = static_cast<int>(batch_attr);
  const std::int64_t n = x.shape()[batch];
  if (lengths.size() != n) {
    throw InvalidArgumentError(
        cat("Length of seq_lens != input.dims(", batch, "), (", lengths.size(), " vs. ", n, ")"));
  }
  for (std::int64_t b = 0; b < n; ++b) {
    if (lengths[b] < 0) throw InvalidArgumentError(cat("seq_lens(", b, ") < 0"));
    if (lengths[b] > x.shape()[seq]) {
      throw InvalidArgumentError(cat("seq_lens(", b, ") > input.dims(", seq, ")"));
    }
  }
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  const Strides strides(x.shape());
  // Batch entry b, positions [from, from + count) along seq, read forwards or backwards.
  const auto part = [&](std::int64_t b, std::int64_t from, std::int64_t count, bool backwards) {
    if (count == 0) return;
    StridedCopy copy;
    for (int i = 0; i < x.rank(); ++i) {
      if (i == batch) continue;
      copy.add(i == seq ? count : x.shape()[i], strides[i],
               i == seq && backwards ? -strides[i] : strides[i]);
    }
    const std::int64_t to = b * strides[batch] + from * strides[seq];
    const std::int64_t in = backwards ? b * strides[batch] + (from + count - 1) * strides[seq] : to;
    copy.run(c.intra_op(), x.dtype(), element_at(out.raw_data(), x.dtype(), to),
             element_at(x.raw_data(), x.dtype(), in));
  };
  for (std::int64_t b = 0; b < n; ++b) {
    part(b, 0, lengths[b], true);
    part(b, lengths[b], x.shape()[seq] - lengths[b], false);
  }
}

// ---- Roll ----

// `to` is `from` shifted by `shift` places, in [1, size), along an axis.
void roll_axis(KernelContext& c, const Array& from, Array& to, int axis, std::int64_t shift) {
  const Strides strides(from.shape());
  const std::int64_t size = from.shape()[axis];
  const auto part = [&](std::int64_t begin, std::int64_t count, std::int64_t target) {
    StridedCopy copy;
    for (int i = 0; i < from.rank(); ++i) {
      copy.add(i == axis ? count : from.shape()[i], strides[i], strides[i]);
    }
    copy.run(c.intra_op(), from.dtype(),
             element_at(to.raw_data(), to.dtype(), target * strides[axis]),
             element_at(from.raw_data(), from.dtype(), begin * strides[axis]));
  };
  part(0, size - shift, shift);
  part(size - shift, shift, 0);
}

void roll(KernelContext& c) {
  const Array& x = c.input(0);
  const IntInput shift(c, 1, "shift");
  const IntInput axes(c, 2, "axis");
  if (x.rank() < 1) throw InvalidArgumentError("input must be 1-D or higher");
  if (!(c.input(1).shape() == c.input(2).shape())) {
    throw InvalidArgumentError("shift and axis must have the same size");
  }
  std::int64_t total[Shape::kMaxRank] = {};
  for (std::int64_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -x.rank() || axes[i] >= x.rank()) {
      throw InvalidArgumentError(cat("axis ", axes[i], " is out of range"));
    }
    const int axis = static_cast<int>(axes[i] < 0 ? axes[i] + x.rank() : axes[i]);
    const std::int64_t size = std::max<std::int64_t>(1, x.shape()[axis]);
    total[axis] = (total[axis] + shift[i] % size + size) % size;
  }
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  // One axis after the other, between two places of which the output is the last.
  int rolled = 0;
  for (int i = 0; i < x.rank(); ++i) rolled += total[i] != 0;
  if (rolled == 0) {
    copy_flat(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data(), x.num_elements());
    return;
  }
  Array scratch;
  if (rolled > 1) scratch = c.allocate_temp(x.dtype(), x.shape());
  const Array* from = &x;
  for (int i = 0; i < x.rank(); ++i) {
    if (total[i] == 0) continue;
    Array& to = rolled % 2 == 1 ? out : scratch;
    roll_axis(c, *from, to, i, total[i]);
    from = &to;
    --rolled;
  }
}

// ---- Blocks ----

struct Blocks {
  int count = 0;
  std::int64_t size[Shape::kMaxRank];
  std::int64_t before[Shape::kMaxRank];
  std::int64_t after[Shape::kMaxRank];
  std::int64_t product = 1;

  Blocks(const KernelContext& c, const char* margins_name) {
    const Array& x = c.input(0);
    const IntInput sizes(c, 1, "block_shape");
    const Array& margins = c.input(2);
    if (sizes.size() + 1 > x.rank()) {
      throw InvalidArgumentError(
          cat("input rank should be >= ", sizes.size() + 1, " instead of ", x.rank()));
    }
    count = static_cast<int>(sizes.size());
    if (!(margins.shape() == Shape{count, 2})) {
      throw InvalidArgumentError(
          cat(margins_name, " should have shape [", count, ", 2] instead of ", margins.shape()));
    }
    const IntInput flat(margins.reshape(Shape{2 * count}), margins_name);
    for (int i = 0; i < count; ++i) {
      size[i] = sizes[i];
      before[i] = flat[2 * i];
      after[i] = flat[2 * i + 1];
      if (size[i] < 1)
        throw InvalidArgumentError(cat("block_shape[", i, "] must be positive but is ", size[i]));
      if (before[i] < 0 || after[i] < 0) {
        throw InvalidArgumentError(
            cat(margins_name, " cannot be negative: ", before[i], " ", after[i]));
      }
      product = checked_multiply(product, size[i]);
    }
  }

  // Calls f(offsets, number) for each place inside a block.
  template <class F>
  void for_each(F f) const {
    std::int64_t offset[Shape::kMaxRank] = {};
    for (std::int64_t k = 0; k < product; ++k) {
      f(offset, k);
      for (int i = count - 1; i >= 0; --i) {
        if (++offset[i] < size[i]) break;
        offset[i] = 0;
      }
    }
  }
};

std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw InvalidArgumentError(
        cat("The sizes ", a, " and ", b, " together need more than 63 bits."));
  }
  return sum;
}

// For a place in the blocks: `space` elements block * i + offset - before, for i in [first, first +
// n), are `blocked` elements i. Copies either way.
void copy_blocks(KernelContext& c, const Blocks& blocks, const Array& x, Array& out,
                 bool to_batch) {
  const Array& space = to_batch ? x : out;
  const Array& batch = to_batch ? out : x;
  const Strides space_strides(space.shape());
  const Strides batch_strides(batch.shape());
  const std::int64_t entries = space.shape()[0];
  blocks.for_each([&](const std::int64_t* offset, std::int64_t k) {
    StridedCopy copy;
    std::int64_t in_space = 0;
    std::int64_t in_batch = k * entries * batch_strides[0];
    bool empty = false;
    const auto add = [&](std::int64_t n, std::int64_t space_stride, std::int64_t batch_stride) {
      copy.add(n, to_batch ? batch_stride : space_stride, to_batch ? space_stride : batch_stride);
    };
    add(entries, space_strides[0], batch_strides[0]);
    for (int i = 1; i < space.rank(); ++i) {
      if (i > blocks.count) {
        add(space.shape()[i], space_strides[i], batch_strides[i]);
        continue;
      }
      const std::int64_t block = blocks.size[i - 1];
      const std::int64_t shift = offset[i - 1] - blocks.before[i - 1];
      // The first i with block * i + shift >= 0, and how many stay below the size.
      const std::int64_t first = shift >= 0 ? 0 : (-shift + block - 1) / block;
      const std::int64_t start = block * first + shift;
      const std::int64_t room = space.shape()[i] - start;
      const std::int64_t n =
          std::min(room <= 0 ? 0 : (room + block - 1) / block, batch.shape()[i] - first);
      empty = empty || n <= 0;
      if (empty) return;
      in_space += start * space_strides[i];
      in_batch += first * batch_strides[i];
      add(n, space_strides[i] * block, batch_strides[i]);
    }
    copy.run(c.intra_op(), x.dtype(),
             element_at(out.raw_data(), x.dtype(), to_batch ? in_batch : in_space),
             element_at(x.raw_data(), x.dtype(), to_batch ? in_space : in_batch));
  });
}

void space_to_batch(KernelContext& c) {
  const Array& x = c.input(0);
  const Blocks blocks(c, "paddings");
  Shape shape = x.shape();
  bool padded_any = false;
  for (int i = 0; i < blocks.count; ++i) {
    const std::int64_t padded =
        checked_sum(x.shape()[i + 1], checked_sum(blocks.before[i], blocks.after[i]));
    padded_any = padded_any || padded != x.shape()[i + 1];
    if (padded % blocks.size[i] != 0) {
      throw InvalidArgumentError(cat("padded_shape[", i, "]=", padded,
                                     " is not divisible by block_shape[", i, "]=", blocks.size[i]));
    }
    shape.set_dim(i + 1, padded / blocks.size[i]);
  }
  shape.set_dim(0, checked_multiply(x.shape()[0], blocks.product));
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  if (padded_any) clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
  if (x.num_elements() != 0) copy_blocks(c, blocks, x, out, true);
}

void batch_to_space(KernelContext& c) {
  const Array& x = c.input(0);
  const Blocks blocks(c, "crops");
  if (x.shape()[0] % blocks.product != 0) {
    throw InvalidArgumentError(cat("Input batch dimension (", x.shape()[0],
                                   ") is not divisible by product of block sizes (", blocks.product,
                                   ")"));
  }
  Shape shape = x.shape();
  for (int i = 0; i < blocks.count; ++i) {
    const std::int64_t whole = checked_multiply(x.shape()[i + 1], blocks.size[i]);
    const std::int64_t crops = checked_sum(blocks.before[i], blocks.after[i]);
    if (crops > whole) {
      throw InvalidArgumentError(
          cat("cropped_shape[", i, "]=", whole - crops, " must be non-negative"));
    }
    shape.set_dim(i + 1, whole - crops);
  }
  shape.set_dim(0, x.shape()[0] / blocks.product);
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() != 0) copy_blocks(c, blocks, x, out, false);
}

// Sizes of the larger picture and strides of both sides along: batch, height, row in the block,
// width, column in the block, channel of the picture.
void depth_blocks(KernelContext& c, bool to_depth) {
  const Array& x = c.input(0);
  const auto block = c.attr<std::int64_t>("block_size");
  const auto& format = c.attr<std::string>("data_format");
  if (format == "NCHW_VECT_C") {
    throw InvalidArgumentError(
        "data_format NCHW_VECT_C is not supported on the CPU: use NHWC or NCHW.");
  }
  if (x.rank() != 4)
    throw InvalidArgumentError(cat("Input rank should be 4 instead of ", x.rank()));
  const bool last = format == "NHWC";
  const int ch = last ? 3 : 1;
  const int h = last ? 1 : 2;
  const int w = h + 1;
  const std::int64_t square = checked_multiply(block, block);
  Shape shape = x.shape();
  if (to_depth) {
    if (x.shape()[h] % block != 0 || x.shape()[w] % block != 0) {
      throw InvalidArgumentError(cat("Image width ", x.shape()[w], " and height ", x.shape()[h],
                                     " should be divisible by block_size: ", block));
    }
    shape.set_dim(h, x.shape()[h] / block);
    shape.set_dim(w, x.shape()[w] / block);
    shape.set_dim(ch, checked_multiply(x.shape()[ch], square));
  } else {
    if (x.shape()[ch] % square != 0) {
      throw InvalidArgumentError(
          cat("Input depth dimension ", x.shape()[ch], " should be divisible by: ", square));
    }
    shape.set_dim(ch, x.shape()[ch] / square);
    shape.set_dim(h, checked_multiply(x.shape()[h], block));
    shape.set_dim(w, checked_multiply(x.shape()[w], block));
  }
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const Shape& deep = to_depth ? out.shape() : x.shape();
  const Shape& wide = to_depth ? x.shape() : out.shape();
  const Strides d(deep);
  const Strides p(wide);
  const std::int64_t channels = wide[ch];
  struct Axis {
    std::int64_t size, wide, deep;
  };
  const Axis batch{deep[0], p[0], d[0]};
  const Axis height{deep[h], p[h] * block, d[h]};
  const Axis row{block, p[h], d[ch] * block * channels};
  const Axis width{deep[w], p[w] * block, d[w]};
  const Axis column{block, p[w], d[ch] * channels};
  const Axis channel{channels, p[ch], d[ch]};
  StridedCopy copy;
  const auto add = [&](std::initializer_list<Axis> axes) {
    for (const Axis& a : axes)
      copy.add(a.size, to_depth ? a.deep : a.wide, to_depth ? a.wide : a.deep);
  };
  // In the order of the destination.
  if (to_depth && last) add({batch, height, width, row, column, channel});
  if (to_depth && !last) add({batch, row, column, channel, height, width});
  if (!to_depth && last) add({batch, height, row, width, column, channel});
  if (!to_depth && !last) add({batch, channel, height, row, width, column});
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

void space_to_depth(KernelContext& c) { depth_blocks(c, true); }
void depth_to_space(KernelContext& c) { depth_blocks(c, false); }

const KernelRegistration kTranspose{{.op = "Transpose", .run = transpose}};
const KernelRegistration kConjugateTranspose{{.op = "ConjugateTranspose", .run = transpose}};
const KernelRegistration kConjugateTranspose64{{.op = "ConjugateTranspose",
                                                .name = "conjugate",
                                                .types = {{"T", {DType::kComplex64}}},
                                                .priority = 10,
                                                .run = conjugate<std::complex<float>>}};
const KernelRegistration kConjugateTranspose128{{.op = "ConjugateTranspose",
                                                 .name = "conjugate",
                                                 .types = {{"T", {DType::kComplex128}}},
                                                 .priority = 10,
                                                 .run = conjugate<std::complex<double>>}};
const KernelRegistration kReverse{{.op = "Reverse", .run = reverse}};
const KernelRegistration kReverseV2{{.op = "ReverseV2", .run = reverse_v2}};
const KernelRegistration kReverseSequence{{.op = "ReverseSequence", .run = reverse_sequence}};
const KernelRegistration kRoll{{.op = "Roll", .run = roll}};
const KernelRegistration kSpaceToBatchND{{.op = "SpaceToBatchND", .run = space_to_batch}};
const KernelRegistration kBatchToSpaceND{{.op = "BatchToSpaceND", .run = batch_to_space}};
const KernelRegistration kSpaceToDepth{{.op = "SpaceToDepth", .run = space_to_depth}};
const KernelRegistration kDepthToSpace{{.op = "DepthToSpace", .run = depth_to_space}};

}  // namespace
}  // namespace tandem::cpu
