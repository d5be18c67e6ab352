// Blocks of images between space and batch or channels.

#include <algorithm>
#include <string>

#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

struct Blocks {
  Sizes size, before, after;
  std::int64_t count() const { return product(size); }
};

void check(const Blocks& blocks, const char* margins) {
  for (std::size_t i = 0; i < blocks.size.size(); ++i) {
    if (blocks.size[i] < 1) refuse("block_shape must be positive");
    if (blocks.before[i] < 0 || blocks.after[i] < 0) {
      refuse(std::string(margins) + " cannot be negative");
    }
  }
}

// From inputs 1 and 2.
Blocks blocks_of(const KernelCall& call, const char* margins) {
  Blocks blocks;
  blocks.size = call.input(1).host_vector("block_shape");
  const TensorView given = call.input(2);
  const auto n = static_cast<std::int64_t>(blocks.size.size());
  if (n + 1 > call.input(0).rank()) refuse("input rank should be >= " + std::to_string(n + 1));
  if (given.sizes != Sizes{n, 2}) {
    refuse(std::string(margins) + " should have shape [" + std::to_string(n) + ", 2]");
  }
  const Sizes flat = given.host_integers();
  for (std::size_t i = 0; i < blocks.size.size(); ++i) {
    blocks.before.push_back(flat[2 * i]);
    blocks.after.push_back(flat[2 * i + 1]);
  }
  check(blocks, margins);
  return blocks;
}

// The older ops: one size for both axes, and the margins in input 1.
Blocks square_blocks_of(const KernelCall& call, const char* margins) {
  const std::int64_t size = call.attr_int("block_size");
  if (size < 2) refuse("Block size should be > 1: " + std::to_string(size));
  if (call.input(0).rank() != 4) refuse("input must be 4-dimensional");
  const TensorView given = call.input(1);
  if (given.sizes != Sizes{2, 2}) refuse(std::string(margins) + " must be a 2 x 2 matrix");
  const Sizes flat = given.host_integers();
  const Blocks blocks{{size, size}, {flat[0], flat[2]}, {flat[1], flat[3]}};
  check(blocks, margins);
  return blocks;
}

// Copies each place within the blocks: `space` elements block * i + offset - before are `batch`
// elements i, as far as they are there.
void copy_blocks(const Blocks& blocks, const TensorView& space, const TensorView& batch,
                 bool to_batch) {
  const Sizes by_space = row_major_strides(space.sizes), by_batch = row_major_strides(batch.sizes);
  const std::int64_t entries = space.sizes[0];
  for (std::int64_t k = 0; k < blocks.count(); ++k) {
    Sizes offsets(blocks.size.size());
    std::int64_t rest = k;
    for (std::size_t i = offsets.size(); i-- > 0;) {
      offsets[i] = rest % blocks.size[i];
      rest /= blocks.size[i];
    }
    Sizes sizes{entries}, space_strides{by_space[0]}, batch_strides{by_batch[0]};
    std::int64_t at_space = 0, at_batch = k * entries * by_batch[0];
    for (std::size_t axis = 1; axis < space.sizes.size(); ++axis) {
      std::int64_t block = 1, n = space.sizes[axis];
      if (axis <= blocks.size.size()) {
        block = blocks.size[axis - 1];
        const std::int64_t shift = offsets[axis - 1] - blocks.before[axis - 1];
        const std::int64_t first = shift >= 0 ? 0 : (-shift + block - 1) / block;
        const std::int64_t start = block * first + shift;
        const std::int64_t room = space.sizes[axis] - start;
        n = std::min(room <= 0 ? 0 : (room + block - 1) / block, batch.sizes[axis] - first);
        at_space += start * by_space[axis];
        at_batch += first * by_batch[axis];
      }
      sizes.push_back(std::max<std::int64_t>(n, 0));
      space_strides.push_back(by_space[axis] * block);
      batch_strides.push_back(by_batch[axis]);
    }
    const std::int64_t count = product(sizes);
    if (count == 0) continue;
    const Strides<1> in_space = walk(sizes, space_strides), in_batch = walk(sizes, batch_strides);
    if (to_batch) {
      copy_elements(size_of(space.type), element_at(space, at_space), in_space,
                    element_at(batch, at_batch), in_batch, count);
    } else {
      copy_elements(size_of(space.type), element_at(batch, at_batch), in_batch,
                    element_at(space, at_space), in_space, count);
    }
  }
}

void space_to_batch(KernelCall& call, const Blocks& blocks) {
  const TensorView x = call.input(0);
  Sizes sizes = x.sizes;
  sizes[0] *= blocks.count();
  bool padded = false;
  for (std::size_t i = 0; i < blocks.size.size(); ++i) {
    std::int64_t& size = sizes[i + 1];
    size += blocks.before[i] + blocks.after[i];
    padded = padded || size != x.sizes[i + 1];
    if (size % blocks.size[i] != 0) {
      refuse("padded_shape[" + std::to_string(i) + "]=" + std::to_string(size) +
             " is not divisible by block_shape[" + std::to_string(i) +
             "]=" + std::to_string(blocks.size[i]));
    }
    size /= blocks.size[i];
  }
  const TensorView y = call.allocate_output(0, sizes);
  if (padded) fill_zeros(y);
  if (y.count > 0 && x.count > 0) copy_blocks(blocks, x, y, true);
}

void batch_to_space(KernelCall& call, const Blocks& blocks) {
  const TensorView x = call.input(0);
  if (x.sizes[0] % blocks.count() != 0) {
    refuse("Input batch dimension (" + std::to_string(x.sizes[0]) +
           ") is not divisible by product of block sizes (" + std::to_string(blocks.count()) + ")");
  }
  Sizes sizes = x.sizes;
  sizes[0] /= blocks.count();
  for (std::size_t i = 0; i < blocks.size.size(); ++i) {
    std::int64_t& size = sizes[i + 1];
    size = size * blocks.size[i] - blocks.before[i] - blocks.after[i];
    if (size < 0)
      refuse("cropped_shape must be non-negative: The crops are larger than the image.");
  }
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count > 0) copy_blocks(blocks, y, x, false);
}

void depth_blocks(KernelCall& call, bool to_depth) {
  const TensorView x = call.input(0);
  const std::int64_t block = call.attr_int("block_size"), square = block * block;
  const std::string format = call.attr_string("data_format");
  if (format != "NHWC" && format != "NCHW") refuse("data_format " + format + " is not supported");
  if (x.rank() != 4) refuse("Input rank should be 4 instead of " + std::to_string(x.rank()));
  const bool last = format == "NHWC";
  const std::size_t ch = last ? 3 : 1, h = last ? 1 : 2, w = h + 1;
  Sizes sizes = x.sizes;
  if (to_depth) {
    if (x.sizes[h] % block != 0 || x.sizes[w] % block != 0) {
      refuse("Image width and height should be divisible by block_size: " + std::to_string(block));
    }
    sizes[h] /= block;
    sizes[w] /= block;
    sizes[ch] *= square;
  } else {
    if (x.sizes[ch] % square != 0) {
      refuse("Input depth dimension " + std::to_string(x.sizes[ch]) +
             " should be divisible by: " + std::to_string(square));
    }
    sizes[ch] /= square;
    sizes[h] *= block;
    sizes[w] *= block;
  }
  const TensorView y = call.allocate_output(0, sizes);
  if (y.count == 0) return;
  const TensorView &deep = to_depth ? y : x, &wide = to_depth ? x : y;
  const Sizes d = row_major_strides(deep.sizes), p = row_major_strides(wide.sizes);
  const std::int64_t channels = wide.sizes[ch];
  // Batch, height, row in the block, width, column in the block, channel.
  const Sizes axes{deep.sizes[0], deep.sizes[h], block, deep.sizes[w], block, channels};
  const Strides<1> in_wide = walk(axes, {p[0], p[h] * block, p[h], p[w] * block, p[w], p[ch]});
  const Strides<1> in_deep =
      walk(axes, {d[0], d[h], d[ch] * block * channels, d[w], d[ch] * channels, d[ch]});
  copy_elements(size_of(x.type), x.data, to_depth ? in_wide : in_deep, y.data,
                to_depth ? in_deep : in_wide, y.count);
}

}  // namespace

void array_space_to_batch_nd(KernelCall& call) {
  space_to_batch(call, blocks_of(call, "paddings"));
}
void array_batch_to_space_nd(KernelCall& call) { batch_to_space(call, blocks_of(call, "crops")); }
void array_space_to_batch(KernelCall& call) {
  space_to_batch(call, square_blocks_of(call, "paddings"));
}
void array_batch_to_space(KernelCall& call) {
  batch_to_space(call, square_blocks_of(call, "crops"));
}
void array_space_to_depth(KernelCall& call) { depth_blocks(call, true); }
void array_depth_to_space(KernelCall& call) { depth_blocks(call, false); }

}  // namespace tandem::cuda
