// Adding a vector to the channels, and its gradient.

#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/norm/channel_rows.h"
#include "tandem/kernels/cpu/norm/channels.h"
#include "tandem/kernels/cpu/norm/float_blocks.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

Channels channels_of(const KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  if (shape.rank() < 2) {
    throw InvalidArgumentError(cat("Input tensor must be at least 2D: ", shape));
  }
  const AttrValue* format = c.find_attr("data_format");
  return Channels::of(shape, format ? *format->get_if<std::string>() : "NHWC");
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

Channels check_bias_add(const KernelContext& c) {
  const Channels d = channels_of(c);
  const Shape& bias = c.input(1).shape();
  if (bias.rank() != 1) throw InvalidArgumentError(cat("Biases must be 1D: ", bias));
  if (bias[0] != d.channels) {
    throw InvalidArgumentError(
        cat("Must provide as many biases as the last dimension of the input tensor (with "
            "data_format NCHW: as its second): ",
            bias, " vs. ", c.input(0).shape()));
  }
  return d;
}

void bias_add(KernelContext& c) {
  const Channels d = check_bias_add(c);
  Array& out = c.reuse_or_allocate_output(0, 0, c.input(0).shape());
  with_addable(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    const T* b = c.input(1).data<T>();
    T* y = out.data<T>();
    const double cost = 0.3 * static_cast<double>(d.row());
    c.intra_op().parallel_for(d.outer, cost, [&](std::int64_t begin, std::int64_t end) {
      add_bias(x, b, y, begin, end, d);
    });
  });
}

template <class T>
void sum_channels(const T* x, Wide<T>* sums, std::int64_t begin, std::int64_t end,
                  const Channels& d) {
  const T* from = x + begin * d.row();
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t channel = 0; channel < d.channels; ++channel, from += d.inner) {
      Wide<T> sum{};
      for (std::int64_t i = 0; i < d.inner; ++i) sum = static_cast<Wide<T>>(sum + widen(from[i]));
      sums[channel] = static_cast<Wide<T>>(sums[channel] + sum);
    }
  }
}

void bias_add_grad(KernelContext& c) {
  const Channels d = channels_of(c);
  Array& out = c.allocate_output(0, Shape{d.channels});
  with_addable(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* x = c.input(0).data<T>();
    const Array scratch = c.allocate_temp(dtype_of<W>, Shape{d.channels});
    W* sums = scratch.data<W>();
    Pieces::of(d).sum(c, d, d.channels, sums, [&](std::int64_t begin, std::int64_t end, W* to) {
      sum_channels(x, to, begin, end, d);
    });
    T* y = out.data<T>();
    for (std::int64_t i = 0; i < d.channels; ++i) y[i] = static_cast<T>(sums[i]);
  });
}

// ---- half, bfloat16 and float by vector loops ----

constexpr DTypeSet kVectorTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};

void add_floats(const float* x, const float* bias, float* y, std::int64_t rows, const Channels& d) {
  if (d.inner == 1) return add_to_rows(x, bias, y, rows, d.channels);
  for_each_run(d, rows, [&](std::int64_t offset, std::int64_t channel) {
    add_to_run(x + offset, bias[channel], y + offset, d.inner);
  });
}

void bias_add_vector(KernelContext& c) {
  const Channels d = check_bias_add(c);
  Array& out = c.reuse_or_allocate_output(0, 0, c.input(0).shape());
  const double cost = 0.15 * static_cast<double>(d.row());
  if (out.dtype() == DType::kFloat) {
    const float* x = c.input(0).data<float>();
    const float* bias = c.input(1).data<float>();
    float* y = out.data<float>();
    return c.intra_op().parallel_for(d.outer, cost, [&](std::int64_t begin, std::int64_t end) {
      add_floats(x + begin * d.row(), bias, y + begin * d.row(), end - begin, d);
    });
  }
  with_type<Half, BFloat16>(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    T* y = out.data<T>();
    Reader<T> bias_reader(c, d.channels);
    const float* bias = bias_reader.floats(c.input(1).data<T>(), d.channels);
    c.intra_op().parallel_for(d.outer, cost, [&](std::int64_t begin, std::int64_t end) {
      Writer<T> block(c, rows_at_once(d) * d.row());
      in_blocks(d, begin, end, [&](std::int64_t at, std::int64_t rows) {
        float* values = block.place(y + at);
        to_floats(x + at, values, rows * d.row());
        add_floats(values, bias, values, rows, d);
        block.done(y + at, rows * d.row());
      });
    });
  });
}

void bias_add_grad_vector(KernelContext& c) {
  const Channels d = channels_of(c);
  Array& out = c.allocate_output(0, Shape{d.channels});
  with_type<Half, BFloat16, float>(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    Writer<T> sums(c, d.channels);
    float* total = sums.place(out.data<T>());
    const auto add = [&](std::int64_t begin, std::int64_t end, float* to) {
      Reader<T> in(c, rows_at_once(d) * d.row());
      in_blocks(d, begin, end, [&](std::int64_t at, std::int64_t rows) {
        const float* values = in.floats(x + at, rows * d.row());
        if (d.inner == 1) return sum_rows(values, to, rows, d.channels);
        for_each_run(d, rows, [&](std::int64_t offset, std::int64_t channel) {
          sum_run(values + offset, to + channel, d.inner);
        });
      });
    };
    Pieces::of(d).sum(c, d, d.channels, total, add);
    sums.done(out.data<T>(), d.channels);
  });
}

const KernelRegistration kBiasAdd{
    {.op = "BiasAdd", .types = {{"T", kNumberTypes}}, .run = bias_add}};
const KernelRegistration kBiasAddV1{
    {.op = "BiasAddV1", .types = {{"T", kNumberTypes}}, .run = bias_add}};
const KernelRegistration kBiasAddGrad{
    {.op = "BiasAddGrad", .types = {{"T", kNumberTypes}}, .run = bias_add_grad}};

KernelDecl vector_kernel(const char* op, KernelFn run) {
  return {.op = op, .name = "vectors", .types = {{"T", kVectorTypes}}, .priority = 10, .run = run};
}
const KernelRegistration kVectorBiasAdd(vector_kernel("BiasAdd", bias_add_vector));
const KernelRegistration kVectorBiasAddV1(vector_kernel("BiasAddV1", bias_add_vector));
const KernelRegistration kVectorBiasAddGrad(vector_kernel("BiasAddGrad", bias_add_grad_vector));

}  // namespace
}  // namespace tandem::cpu
