#include <algorithm>
#include <functional>

#include "tandem/kernels/cuda/array/copy.h"
#include "tandem/kernels/cuda/conv/library.h"
#include "tandem/kernels/cuda/cudnn/convolve.h"
#include "tandem/kernels/cuda/linalg/product_epilogue.h"

namespace tandem::cuda {
namespace {

std::int64_t elements(const VolumeLayout& l) {
  return l.batch * l.channels * l.size[0] * l.size[1] * l.size[2];
}

// A filter of one entry, which meets each place once: rows of channels times a matrix.
bool is_product(const Convolution& c) {
  if (!c.channels_last() || c.filter_in != c.x.channels) return false;
  for (int axis = 0; axis < 3; ++axis) {
    const Window& w = c.window;
    if (w.size[axis] != 1 || w.stride[axis] != 1 || w.pad[axis] != 0 ||
        c.x.size[axis] != c.y.size[axis])
      return false;
  }
  return true;
}

bool multiply(const KernelCall& call, ConvolutionPart part, const Convolution& c,
              const ConvolutionOperands& o, const Epilogue& epilogue) {
  const std::int64_t places = elements(c.y) / c.y.channels, in = c.x.channels, out = c.y.channels;
  Product p{.type = o.type, .result_type = o.type};
  if (part == ConvolutionPart::kForward) {
    p.result_type = o.result_type;
    p.rows = places;
    p.columns = out;
    p.depth = in;
    p.a = o.x;
    p.b = o.filter;
    p.y = o.y;
  } else if (part == ConvolutionPart::kInputGradient) {
    p.rows = places;
    p.columns = in;
    p.depth = out;
    p.transpose_b = true;
    p.a = o.y;
    p.b = o.filter;
    p.y = o.x;
  } else {
    p.rows = in;
    p.columns = out;
    p.depth = places;
    p.transpose_a = true;
    p.a = o.x;
    p.b = o.y;
    p.y = o.filter;
  }
  return multiply_with_epilogue(call, p, epilogue);
}

// ---- cuDNN ----

std::int64_t padding_behind(const Convolution& c, int axis) {
  const Window& w = c.window;
  return std::max<std::int64_t>(0, (w.out[axis] - 1) * w.stride[axis] +
                                       (w.size[axis] - 1) * w.dilation[axis] + 1 - c.x.size[axis] -
                                       w.pad[axis]);
}

bool is_padded_evenly(const Convolution& c) {
  for (int axis = 0; axis < 3; ++axis) {
    if (padding_behind(c, axis) != c.window.pad[axis]) return false;
  }
  return true;
}

// The convolution over an input that has its padding.
Convolution padded(Convolution c) {
  const bool last = c.channels_last();
  std::int64_t size[3];
  for (int axis = 0; axis < 3; ++axis)
    size[axis] = c.x.size[axis] + c.window.pad[axis] + padding_behind(c, axis);
  c.x = volume_layout(volume_sizes(c.x.rank, c.x.batch, size, c.x.channels, !last), !last);
  std::fill_n(c.window.pad, 3, 0);
  return c;
}

Strides<1> walk_of(const Convolution& c, const VolumeLayout& l, const std::int64_t (&size)[3]) {
  if (c.channels_last()) {
    return walk({l.batch, size[0], size[1], size[2], l.channels},
                {l.by_batch, l.by[0], l.by[1], l.by[2], l.by_channel});
  }
  return walk({l.batch, l.channels, size[0], size[1], size[2]},
              {l.by_batch, l.by_channel, l.by[0], l.by[1], l.by[2]});
}

// Copies between an input and the part of a padded one that it is.
class Padding {
 public:
  Padding(const Convolution& own, const Convolution& padded, Type type)
      : own_(walk_of(own, own.x, own.x.size)),
        inner_(walk_of(padded, padded.x, own.x.size)),
        bytes_(size_of(type)),
        count_(elements(own.x)) {
    for (int axis = 0; axis < 3; ++axis) first_ += own.window.pad[axis] * padded.x.by[axis];
  }
  void put(const void* own, void* padded) const {
    copy_elements(bytes_, own, own_, inside(padded), inner_, count_);
  }
  void take(void* padded, void* own) const {
    copy_elements(bytes_, inside(padded), inner_, own, own_, count_);
  }

 private:
  void* inside(void* padded) const {
    return static_cast<std::byte*>(padded) + first_ * static_cast<std::int64_t>(bytes_);
  }
  Strides<1> own_, inner_;
  std::size_t bytes_;
  std::int64_t count_, first_ = 0;
};

// TensorFlow's filters are [place, in, out]; cuDNN's [out, place, in] beside channels that come
// last, else [out, in, place].
struct FilterOrder {
  Strides<1> tandem, cudnn;
  std::int64_t count;

  explicit FilterOrder(const Convolution& c) {
    const std::int64_t places = c.window.size[0] * c.window.size[1] * c.window.size[2];
    const std::int64_t in = c.filter_in, out = c.y.channels;
    count = places * in * out;
    tandem = c.channels_last() ? walk({out, places, in}, {1, in * out, out})
                               : walk({out, in, places}, {1, out, in * out});
    cudnn = walk({count}, {1});
  }
};

// `pad` is called before the input is read.
bool convolve_evenly(const KernelCall& call, ConvolutionPart part, const Convolution& c,
                     const ConvolutionOperands& o, const Epilogue& epilogue,
                     const std::function<void()>& pad) {
  const std::size_t bytes = size_of(o.type);
  const FilterOrder order(c);
  void* const filter = call.scratch(static_cast<std::size_t>(order.count) * bytes);
  CudnnConvolution job{
      .part = part, .type = o.type, .convolution = c, .x = o.x, .filter = filter, .y = o.y};
  const auto prepare = [&] {
    pad();
    if (part != ConvolutionPart::kFilterGradient)
      copy_elements(bytes, o.filter, order.tandem, filter, order.cudnn, order.count);
  };
  if (!epilogue.empty()) {
    job.bias = epilogue.bias;
    job.addend = epilogue.addend;
    job.activation = epilogue.activation;
    const int is_float = o.type == Type::kFloat ? 1 : 0;
    const bool fits =
        (!epilogue.bias || epilogue.float_bias == is_float) &&
        (!epilogue.addend || (epilogue.addend_row != 0 && epilogue.float_addend == is_float));
    if (fits && convolve_by_cudnn(call, job, prepare)) return true;
    job.bias = job.addend = nullptr;
    job.activation = Activation::kNone;
    // Not where the addend still lies.
    if (epilogue.addend == o.y)
      job.y = call.scratch(static_cast<std::size_t>(elements(c.y)) * bytes);
  }
  if (!convolve_by_cudnn(call, job, prepare)) return false;
  if (part == ConvolutionPart::kFilterGradient)
    copy_elements(bytes, filter, order.cudnn, o.filter, order.tandem, order.count);
  if (!epilogue.empty()) {
    apply_epilogue(job.y, o.type, o.y, o.type, o.type, elements(c.y) / c.y.channels, c.y.channels,
                   epilogue);
  }
  return true;
}

bool convolve(const KernelCall& call, ConvolutionPart part, const Convolution& c,
              const ConvolutionOperands& o, const Epilogue& epilogue) {
  if (o.type == Type::kDouble || o.result_type != o.type ||
      (!epilogue.empty() && !c.channels_last()) || !is_cudnn_usable())
    return false;
  if (is_padded_evenly(c)) return convolve_evenly(call, part, c, o, epilogue, [] {});
  const Convolution inner = padded(c);
  const Padding padding(c, inner, o.type);
  const std::size_t bytes = static_cast<std::size_t>(elements(inner.x)) * size_of(o.type);
  ConvolutionOperands with = o;
  with.x = call.scratch(bytes);
  const auto pad = [&] {
    if (part == ConvolutionPart::kInputGradient) return;
    call.zero(with.x, bytes);
    padding.put(o.x, with.x);
  };
  if (!convolve_evenly(call, part, inner, with, epilogue, pad)) return false;
  if (part == ConvolutionPart::kInputGradient) padding.take(with.x, o.x);
  return true;
}

}  // namespace

bool convolve_by_library(const KernelCall& call, ConvolutionPart part, const Convolution& c,
                         const ConvolutionOperands& o, const Epilogue& epilogue) {
  if (elements(c.x) == 0 || elements(c.y) == 0 || c.filter_in == 0) return false;
  if (is_product(c) && multiply(call, part, c, o, epilogue)) return true;
  return convolve(call, part, c, o, epilogue);
}

}  // namespace tandem::cuda
