#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/conv/conv_choice.h"
#include "tandem/kernels/cpu/conv/conv_product.h"
#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/onednn/conv.h"
#include "tandem/kernels/cpu/onednn/support.h"

namespace tandem::cpu {
namespace {

// oneDNN takes NHWC images of float, and of bfloat16 where the processor multiplies it. Everything
// else is converted to that form first: half through float, NCHW by rearranging.

using LibraryFn = bool (*)(KernelContext&, const ConvCase&, const void*, const void*, void*);

enum class Role { kInput, kOutput, kFilter };

std::int64_t count(const ConvCase& p, Role role) {
  switch (role) {
    case Role::kInput: return p.input_shape().num_elements();
    case Role::kOutput: return p.output_shape().num_elements();
    default: return p.filter_shape.num_elements();
  }
}

// An operand as the library takes it: the array itself, or a converted copy that `holder` keeps.
const void* prepare(KernelContext& c, const ConvCase& p, DType compute, Role role, const void* data,
                    Array holders[2]) {
  const std::int64_t elements = count(p, role);
  if (compute != p.dtype) {
    holders[0] = c.allocate_temp(compute, Shape{elements});
    to_float(c.intra_op(), p.dtype, data, holders[0].data<float>(), elements);
    data = holders[0].raw_data();
  }
  if (p.nchw && role != Role::kFilter) {
    const bool input = role == Role::kInput;
    holders[1] = c.allocate_temp(compute, Shape{elements});
    onednn::swap_image_order(c.intra_op(), compute, true, p.batch, input ? p.y.input : p.y.output,
                             input ? p.x.input : p.x.output, input ? p.in_depth : p.out_depth, data,
                             holders[1].raw_data());
    data = holders[1].raw_data();
  }
  return data;
}

bool is_native(DType dtype) {
  return dtype == DType::kFloat || (dtype == DType::kBFloat16 && onednn::has_native_bfloat16());
}

// `native`: as they are; else as float.
bool run_converted(KernelContext& c, const ConvCase& p, LibraryFn run, const Role roles[3],
                   bool native, const void* first, const void* second, void* result) {
  if (native && !p.nchw) return run(c, p, first, second, result);

  ConvCase plain = p;
  plain.dtype = native ? p.dtype : DType::kFloat;
  plain.nchw = false;
  Array first_holders[2], second_holders[2];
  first = prepare(c, p, plain.dtype, roles[0], first, first_holders);
  second = prepare(c, p, plain.dtype, roles[1], second, second_holders);

  const std::int64_t elements = count(p, roles[2]);
  const bool swapped = p.nchw && roles[2] != Role::kFilter;
  const Array computed =
      native && !swapped ? Array() : c.allocate_temp(plain.dtype, Shape{elements});
  if (!run(c, plain, first, second, computed.valid() ? computed.raw_data() : result)) return false;
  if (!computed.valid()) return true;

  const void* values = computed.raw_data();
  Array turned;
  if (swapped) {
    const bool input = roles[2] == Role::kInput;
    if (!native) turned = c.allocate_temp(plain.dtype, Shape{elements});
    void* target = native ? result : turned.raw_data();
    onednn::swap_image_order(c.intra_op(), plain.dtype, false, p.batch,
                             input ? p.y.input : p.y.output, input ? p.x.input : p.x.output,
                             input ? p.in_depth : p.out_depth, values, target);
    values = target;
  }
  if (!native)
    from_float(c.intra_op(), static_cast<const float*>(values), p.dtype, result, elements);
  return true;
}

// The library computes places inside an image in 32 bits.
bool fits(const ConvCase& p) {
  constexpr double kLargest = 2147483647.0;
  const auto bytes = [&](const Shape& shape) {
    return static_cast<double>(shape.num_elements()) / static_cast<double>(p.batch) * 4;
  };
  return bytes(p.input_shape()) <= kLargest && bytes(p.output_shape()) <= kLargest &&
         static_cast<double>(p.filter_shape.num_elements()) * 4 <= kLargest;
}

using RunsAsProduct = bool (*)(const ConvCase&);

template <Problem problem, LibraryFn run, RunsAsProduct runs_as_product, ConvFn product>
bool product_or(KernelContext& c, const ConvCase& p, const void* first, const void* second,
                void* result) {
  if (!can_run_as_product(p)) return run(c, p, first, second, result);
  const auto go = [&](const ConvCase& part, int way) {
    if (static_cast<ConvWay>(way) == ConvWay::kConvolution)
      return run(c, part, first, second, result);
    product(c, part, first, second, result);
    return true;
  };
  const int way = conv_way(c, problem, p, kConvWays, runs_as_product(p) ? 1 : 0, go);
  return go(p, way) || go(p, static_cast<int>(ConvWay::kMatMul));
}

template <Problem problem, LibraryFn run, ConvFn reference, Role first_role, Role second_role,
          Role result_role>
void conv(KernelContext& c, const ConvCase& p, const void* first, const void* second,
          void* result) {
  static constexpr Role roles[3] = {first_role, second_role, result_role};
  if (!fits(p)) return reference(c, p, first, second, result);
  bool native = is_native(p.dtype);
  if (native && p.dtype == DType::kBFloat16) {
    const int way =
        conv_way(c, problem, p, kBFloat16ConvWays, 0, [&](const ConvCase& part, int candidate) {
          return run_converted(c, part, run, roles, candidate == 0, first, second, result);
        });
    native = static_cast<BFloat16ConvWay>(way) == BFloat16ConvWay::kNative;
  }
  if (!run_converted(c, p, run, roles, native, first, second, result))
    reference(c, p, first, second, result);
}

constexpr ConvFn kForward = conv<Problem::kConvForward,
                                 product_or<Problem::kConvForward, onednn::conv_forward,
                                            forward_runs_as_product, conv_forward_product>,
                                 conv_reference, Role::kInput, Role::kFilter, Role::kOutput>;
constexpr ConvFn kBackpropInput =
    conv<Problem::kConvBackpropInput,
         product_or<Problem::kConvBackpropInput, onednn::conv_backprop_input,
                    backprop_input_runs_as_product, conv_backprop_input_product>,
         conv_backprop_input_reference, Role::kFilter, Role::kOutput, Role::kInput>;
constexpr ConvFn kBackpropFilter =
    conv<Problem::kConvBackpropFilter,
         product_or<Problem::kConvBackpropFilter, onednn::conv_backprop_filter,
                    backprop_filter_runs_as_product, conv_backprop_filter_product>,
         conv_backprop_filter_reference, Role::kInput, Role::kOutput, Role::kFilter>;

constexpr DTypeSet kTypes{DType::kFloat, DType::kBFloat16, DType::kHalf};

const KernelRegistration kConv2D{{.op = "Conv2D",
                                  .name = "oneDNN",
                                  .types = {{"T", kTypes}},
                                  .priority = 10,
                                  .run = conv_kernel<kForward, false>}};
const KernelRegistration kConv2DBackpropInput{
    {.op = "Conv2DBackpropInput",
     .name = "oneDNN",
     .types = {{"T", kTypes}},
     .priority = 10,
     .run = conv_backprop_input_kernel<kBackpropInput, false>}};
const KernelRegistration kConv2DBackpropFilter{
    {.op = "Conv2DBackpropFilter",
     .name = "oneDNN",
     .types = {{"T", kTypes}},
     .priority = 10,
     .run = conv_backprop_filter_kernel<kBackpropFilter, false>}};

// The library has fast depthwise kernels for one filter a channel alone.
const char* one_filter_a_channel(const Shape& filter) {
  return filter.rank() == 4 && filter[3] != 1 ? "the depth multiplier is not 1" : nullptr;
}
const char* accepts_filter(const KernelContext& c) {
  return one_filter_a_channel(c.input(1).shape());
}

// Every channel `times` times. A channel of a pixel is one element, that of a plane `inner`.
template <class T>
void repeat_channels(IntraOpPool& pool, const T* from, T* to, std::int64_t channels,
                     std::int64_t inner, std::int64_t times) {
  pool.parallel_for(channels, static_cast<double>(inner * times) * 0.5,
                    [=](std::int64_t begin, std::int64_t end) {
                      T* at = to + begin * inner * times;
                      for (std::int64_t i = begin; i < end; ++i) {
                        for (std::int64_t k = 0; k < times; ++k) {
                          for (std::int64_t j = 0; j < inner; ++j) *at++ = from[i * inner + j];
                        }
                      }
                    });
}

// Several filters a channel are one each of as many equal channels: the gradient lies the same.
void depthwise_backprop_filter(KernelContext& c) {
  const ConvCase p = backprop_filter_case(c, true);
  Array& result = c.allocate_output(0, p.filter_shape);
  const Array &image = c.input(0), &gradient = c.input(2);
  const std::int64_t times = p.filter_shape[3];
  if (times == 1 || p.no_work()) return run_conv(c, p, kBackpropFilter, image, gradient, result);
  ConvCase wide = p;
  wide.in_depth = wide.groups = p.out_depth;
  wide.filter_shape = Shape{p.y.filter, p.x.filter, p.out_depth, 1};
  // With long strides the equal channels are much more than all that is read.
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  const std::int64_t elements = wide.input_shape().num_elements();
  if (!fits(wide) || (elements > kMany && elements > 8 * gradient.num_elements())) {
    return run_conv(c, p, conv_backprop_filter_reference, image, gradient, result);
  }
  const Array repeated = c.allocate_temp(p.dtype, wide.input_shape());
  const std::int64_t inner = p.nchw ? p.y.input * p.x.input : 1;
  const std::int64_t channels = image.num_elements() / inner;
  if (dtype_size(p.dtype) == 4) {
    repeat_channels(c.intra_op(), static_cast<const std::uint32_t*>(image.raw_data()),
                    static_cast<std::uint32_t*>(repeated.raw_data()), channels, inner, times);
  } else {
    repeat_channels(c.intra_op(), static_cast<const std::uint16_t*>(image.raw_data()),
                    static_cast<std::uint16_t*>(repeated.raw_data()), channels, inner, times);
  }
  run_conv(c, wide, kBackpropFilter, repeated, gradient, result);
}

const KernelRegistration kDepthwise{{.op = "DepthwiseConv2dNative",
                                     .name = "oneDNN",
                                     .types = {{"T", kTypes}},
                                     .priority = 10,
                                     .run = conv_kernel<kForward, true>,
                                     .accepts = accepts_filter}};
const KernelRegistration kDepthwiseBackpropInput{
    {.op = "DepthwiseConv2dNativeBackpropInput",
     .name = "oneDNN",
     .types = {{"T", kTypes}},
     .priority = 10,
     .run = conv_backprop_input_kernel<kBackpropInput, true>,
     .accepts = accepts_filter}};
const KernelRegistration kDepthwiseBackpropFilter{{.op = "DepthwiseConv2dNativeBackpropFilter",
                                                   .name = "oneDNN",
                                                   .types = {{"T", kTypes}},
                                                   .priority = 10,
                                                   .run = depthwise_backprop_filter}};

}  // namespace

void conv_forward(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                  void* output) {
  kForward(c, p, image, filter, output);
}

bool library_takes(const ConvCase& p) { return fits(p) && is_native(p.dtype) && !p.nchw; }

}  // namespace tandem::cpu
