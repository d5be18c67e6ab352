// Adding a vector to the channels, and its gradient.

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

// A value as [outer, channels, inner].
struct Channels {
  std::int64_t outer = 0;
  std::int64_t channels = 0;
  std::int64_t inner = 0;
};

Channels channels_of(const KernelContext& c, const char* what) {
  const Shape& shape = c.input(0).shape();
  if (shape.rank() < 2) {
    throw InvalidArgumentError(cat(what, " must be at least 2D: ", shape));
  }
  const AttrValue* format = c.find_attr("data_format");
  const bool nchw = format && *format->get_if<std::string>() == "NCHW";
  const int axis = nchw ? 1 : shape.rank() - 1;
  return {shape.product(0, axis), shape[axis], shape.product(axis + 1, shape.rank())};
}

template <class T>
void add_bias(const T* x, const T* bias, T* y, std::int64_t begin, std::int64_t end,
              const Channels& d) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * d.channels * d.inner;
    if (d.inner == 1) {
      for (std::int64_t i = 0; i < d.channels; ++i) {
        y[at + i] = static_cast<T>(widen(x[at + i]) + widen(bias[i]));
      }
      continue;
    }
    for (std::int64_t channel = 0; channel < d.channels; ++channel) {
      const Wide<T> b = widen(bias[channel]);
      const std::int64_t from = at + channel * d.inner;
      for (std::int64_t i = from; i < from + d.inner; ++i) y[i] = static_cast<T>(widen(x[i]) + b);
    }
  }
}

void bias_add(KernelContext& c) {
  const Channels d = channels_of(c, "Input tensor");
  const Shape& shape = c.input(0).shape();
  const Shape& bias = c.input(1).shape();
  if (bias.rank() != 1) throw InvalidArgumentError(cat("Biases must be 1D: ", bias));
  if (bias[0] != d.channels) {
    throw InvalidArgumentError(
        cat("Must provide as many biases as the last dimension of the input tensor (with "
            "data_format NCHW: as its second): ",
            bias, " vs. ", shape));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, shape);
  with_addable(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    const T* b = c.input(1).data<T>();
    T* y = out.data<T>();
    const double cost = 0.3 * static_cast<double>(d.channels * d.inner);
    c.intra_op().parallel_for(d.outer, cost, [&](std::int64_t begin, std::int64_t end) {
      add_bias(x, b, y, begin, end, d);
    });
  });
}

template <class T>
void sum_channels(const T* x, Wide<T>* sums, std::int64_t begin, std::int64_t end,
                  const Channels& d) {
  std::fill(sums, sums + d.channels, Wide<T>());
  for (std::int64_t row = begin; row < end; ++row) {
    const T* from = x + row * d.channels * d.inner;
    if (d.inner == 1) {
      for (std::int64_t i = 0; i < d.channels; ++i) {
        sums[i] = static_cast<Wide<T>>(sums[i] + widen(from[i]));
      }
      continue;
    }
    for (std::int64_t channel = 0; channel < d.channels; ++channel, from += d.inner) {
      Wide<T> sum{};
      for (std::int64_t i = 0; i < d.inner; ++i) sum = static_cast<Wide<T>>(sum + widen(from[i]));
      sums[channel] = static_cast<Wide<T>>(sums[channel] + sum);
    }
  }
}

// Sums of pieces of rows first, then of these: exact enough, and whatever the number of threads the
// same.
void bias_add_grad(KernelContext& c) {
  const Channels d = channels_of(c, "Input tensor");
  Array& out = c.allocate_output(0, Shape{d.channels});
  constexpr std::int64_t kMostPieces = 128;
  constexpr std::int64_t kSmallestPiece = 8192;  // elements
  const std::int64_t row = std::max<std::int64_t>(1, d.channels * d.inner);
  const std::int64_t rows = std::max((d.outer + kMostPieces - 1) / kMostPieces,
                                     std::max<std::int64_t>(1, kSmallestPiece / row));
  const std::int64_t pieces = std::max<std::int64_t>(1, (d.outer + rows - 1) / rows);
  with_addable(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* x = c.input(0).data<T>();
    const Array partial = c.allocate_temp(dtype_of<W>, Shape{pieces, d.channels});
    W* sums = partial.data<W>();
    const auto sum_piece = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        sum_channels(x, sums + p * d.channels, p * rows, std::min(d.outer, (p + 1) * rows), d);
      }
    };
    if (pieces == 1) {
      sum_piece(0, 1);
    } else {
      c.intra_op().for_each_piece(pieces, sum_piece);
    }
    for (std::int64_t p = 1; p < pieces; ++p) {
      const W* more = sums + p * d.channels;
      for (std::int64_t i = 0; i < d.channels; ++i) sums[i] = static_cast<W>(sums[i] + more[i]);
    }
    T* y = out.data<T>();
    for (std::int64_t i = 0; i < d.channels; ++i) y[i] = static_cast<T>(sums[i]);
  });
}

const KernelRegistration kBiasAdd{
    {.op = "BiasAdd", .types = {{"T", kNumberTypes}}, .run = bias_add}};
const KernelRegistration kBiasAddV1{
    {.op = "BiasAddV1", .types = {{"T", kNumberTypes}}, .run = bias_add}};
const KernelRegistration kBiasAddGrad{
    {.op = "BiasAddGrad", .types = {{"T", kNumberTypes}}, .run = bias_add_grad}};

}  // namespace
}  // namespace tandem::cpu
