// Blocks of images as a batch, and indices from one data format to another.

#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// Images [batch, height, width, depth] and what is added to or cut off their sides.
struct Blocks {
  std::int64_t block = 0;
  std::int64_t around[4] = {};  // top, bottom, left, right
};

Blocks blocks_of(const KernelContext& c, const char* name) {
  Blocks b;
  b.block = c.attr<std::int64_t>("block_size");
  if (b.block < 2) throw InvalidArgumentError(cat("Block size should be > 1: ", b.block));
  if (c.input(0).rank() != 4) {
    throw InvalidArgumentError(
        cat("input must be 4-dimensional, but has shape ", c.input(0).shape()));
  }
  const Array& amounts = c.input(1);
  if (!(amounts.shape() == Shape{2, 2})) {
    throw InvalidArgumentError(
        cat(name, " must be a 2 x 2 matrix, but has shape ", amounts.shape()));
  }
  for (int i = 0; i < 4; ++i) {
    b.around[i] = amounts.dtype() == DType::kInt32 ? amounts.data<std::int32_t>()[i]
                                                   : amounts.data<std::int64_t>()[i];
    if (b.around[i] < 0 || b.around[i] > (std::int64_t{1} << 40)) {
      throw InvalidArgumentError(
          cat(name, " must be non-negative and below 2^40, but hold ", b.around[i]));
    }
  }
  return b;
}

// Calls f(batch row, image row): pixel (y, x) of image n lies at ((y % block) * block + x % block)
// * batch + n of the blocks, whose rows and columns are those of the padded image over the block.
// `image_place` is -1 in the padding.
template <class F>
void for_each_pixel(const Shape& image, const Shape& blocks, const Blocks& b, F f) {
  const std::int64_t batch = image[0];
  for (std::int64_t row = 0; row < blocks[0]; ++row) {
    const std::int64_t offset = row / batch, n = row % batch;
    for (std::int64_t by = 0; by < blocks[1]; ++by) {
      const std::int64_t y = by * b.block + offset / b.block - b.around[0];
      for (std::int64_t bx = 0; bx < blocks[2]; ++bx) {
        const std::int64_t x = bx * b.block + offset % b.block - b.around[2];
        const bool inside = y >= 0 && y < image[1] && x >= 0 && x < image[2];
        f((row * blocks[1] + by) * blocks[2] + bx, inside ? (n * image[1] + y) * image[2] + x : -1);
      }
    }
  }
}

void space_to_batch(KernelContext& c) {
  const Blocks b = blocks_of(c, "paddings");
  const Shape& in = c.input(0).shape();
  const std::int64_t height = in[1] + b.around[0] + b.around[1];
  const std::int64_t width = in[2] + b.around[2] + b.around[3];
  if (height % b.block != 0 || width % b.block != 0) {
    throw InvalidArgumentError(
        cat("Padded sides ", height, " and ", width, " are not divisible by block_size ", b.block));
  }
  const Shape shape{checked_multiply(in[0], checked_multiply(b.block, b.block)), height / b.block,
                    width / b.block, in[3]};
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  with_element(out.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(c.input(0).raw_data());
    T* to = static_cast<T*>(out.raw_data());
    for_each_pixel(in, shape, b, [&](std::int64_t block_place, std::int64_t image_place) {
      if (image_place < 0) {
        clear_elements(to + block_place * in[3], in[3]);
      } else {
        copy_elements(to + block_place * in[3], from + image_place * in[3], in[3]);
      }
    });
  });
}

void batch_to_space(KernelContext& c) {
  const Blocks b = blocks_of(c, "crops");
  const Shape& in = c.input(0).shape();
  const std::int64_t blocks = checked_multiply(b.block, b.block);
  if (in[0] % blocks != 0) {
    throw InvalidArgumentError(
        cat("Input batch dimension (", in[0], ") is not divisible by block size squared ", blocks));
  }
  const std::int64_t height = checked_multiply(in[1], b.block) - b.around[0] - b.around[1];
  const std::int64_t width = checked_multiply(in[2], b.block) - b.around[2] - b.around[3];
  if (height < 0 || width < 0) {
    throw InvalidArgumentError("The crops are larger than the image.");
  }
  const Shape shape{in[0] / blocks, height, width, in[3]};
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  with_element(out.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(c.input(0).raw_data());
    T* to = static_cast<T*>(out.raw_data());
    for_each_pixel(shape, in, b, [&](std::int64_t block_place, std::int64_t image_place) {
      if (image_place >= 0) {
        copy_elements(to + image_place * in[3], from + block_place * in[3], in[3]);
      }
    });
  });
}

// ---- Data formats ----

struct Formats {
  std::string from, to;
};

Formats formats_of(const KernelContext& c) {
  Formats f{c.attr<std::string>("src_format"), c.attr<std::string>("dst_format")};
  if ((f.from.size() != 4 && f.from.size() != 5) || f.to.size() != f.from.size()) {
    throw InvalidArgumentError(
        cat("Source and destination format must be of length 4 or 5, but "
            "are ",
            f.from, " and ", f.to));
  }
  for (const char axis : f.to) {
    if (f.from.find(axis) == std::string::npos || f.to.find(axis) != f.to.rfind(axis)) {
      throw InvalidArgumentError(
          cat("Destination format ", f.to, " is no permutation of source format ", f.from));
    }
  }
  return f;
}

std::string spatial_only(const std::string& format) {
  std::string axes;
  for (const char axis : format) {
    if (axis != 'N' && axis != 'C') axes += axis;
  }
  return axes;
}

template <class T>
void vec_permute(KernelContext& c) {
  Formats f = formats_of(c);
  const Array& x = c.input(0);
  if (x.rank() != 1 && x.rank() != 2) {
    throw InvalidArgumentError(
        cat("input must be a vector or 2D tensor, but got shape ", x.shape()));
  }
  const auto count = static_cast<std::size_t>(x.shape()[0]);
  if (count + 2 == f.from.size()) f = {spatial_only(f.from), spatial_only(f.to)};
  if (count != f.from.size() || count != f.to.size()) {
    throw InvalidArgumentError(
        cat("1D input must be of size 2 below or equal to the number of "
            "axes, but got shape ",
            x.shape()));
  }
  const std::int64_t columns = x.rank() == 2 ? x.shape()[1] : 1;
  if (x.rank() == 2 && columns != 2) {
    throw InvalidArgumentError(
        cat("Second dimension of 2D input must be of size 2, but got shape ", x.shape()));
  }
  Array& y = c.allocate_output(0, x.shape());
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = static_cast<std::int64_t>(f.from.find(f.to[i]));
    for (std::int64_t k = 0; k < columns; ++k) {
      y.data<T>()[static_cast<std::int64_t>(i) * columns + k] = x.data<T>()[from * columns + k];
    }
  }
}

template <class T>
void dim_map(KernelContext& c) {
  const Formats f = formats_of(c);
  const Array& x = c.input(0);
  const auto axes = static_cast<T>(f.from.size());
  Array& y = c.allocate_output(0, x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const T axis = x.data<T>()[i];
    if (axis < -axes || axis >= axes) {
      throw InvalidArgumentError(cat("Axis ", axis, " is not in [", -axes, ", ", axes, ")."));
    }
    const char name = f.from[static_cast<std::size_t>(axis < 0 ? axis + axes : axis)];
    y.data<T>()[i] = static_cast<T>(f.to.find(name));
  }
}

const KernelRegistration kSpaceToBatch{{.op = "SpaceToBatch", .run = space_to_batch}};
const KernelRegistration kBatchToSpace{{.op = "BatchToSpace", .run = batch_to_space}};

template <class T>
KernelDecl format_kernel(const char* op, KernelFn run) {
  return {.op = op, .types = {{"T", {dtype_of<T>}}}, .run = run};
}
const KernelRegistration kPermute32(format_kernel<std::int32_t>("DataFormatVecPermute",
                                                                vec_permute<std::int32_t>));
const KernelRegistration kPermute64(format_kernel<std::int64_t>("DataFormatVecPermute",
                                                                vec_permute<std::int64_t>));
const KernelRegistration kMap32(format_kernel<std::int32_t>("DataFormatDimMap",
                                                            dim_map<std::int32_t>));
const KernelRegistration kMap64(format_kernel<std::int64_t>("DataFormatDimMap",
                                                            dim_map<std::int64_t>));

}  // namespace
}  // namespace tandem::cpu
