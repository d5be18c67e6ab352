// _FusedConv2D: a convolution and what follows it.

#include "tandem/kernels/cpu/onednn/fused_conv.h"

#include <cstring>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/conv/conv_product.h"
#include "tandem/kernels/cpu/conv/epilogue.h"
#include "tandem/kernels/cpu/elementwise/in_float.h"

namespace tandem::cpu {
namespace {

// The bias as floats in memory that the result does not share.
const float* float_bias(KernelContext& c, const Array* bias, const Array& out, Array& holder) {
  if (!bias) return nullptr;
  if (bias->dtype() == DType::kFloat && bias->raw_data() != out.raw_data())
    return bias->data<float>();
  holder = c.allocate_temp(DType::kFloat, bias->shape());
  to_float(c.intra_op(), bias->dtype(), bias->raw_data(), holder.data<float>(),
           bias->num_elements());
  return holder.data<float>();
}

// An addend of another batch size is repeated, or the convolution is.
Shape result_shape(const ConvCase& p, const Array* addend) {
  Shape shape = p.output_shape();
  if (!addend || addend->shape() == shape) return shape;
  const Shape& other = addend->shape();
  bool fits = other.rank() == 4 && (other[0] == 1 || shape[0] == 1);
  for (int i = 1; i < 4 && fits; ++i) fits = other[i] == shape[i];
  if (!fits) {
    throw InvalidArgumentError(cat("Incompatible shapes: ", shape, " vs. ", other));
  }
  return shape[0] == 1 ? other : shape;
}

// False if it is none. Constant weights are packed for the convolution.
bool run_as_product(KernelContext& c, const ConvCase& p, const Epilogue& e, const Array& filter,
                    Array& out) {
  const bool floats = out.dtype() == DType::kFloat && (!e.bias || e.bias->dtype() == DType::kFloat);
  if (!floats || &onednn::plain_weights(filter) != &filter || !forward_runs_as_product(p))
    return false;
  if (e.bias && e.bias->raw_data() == out.raw_data()) return false;
  if (e.addend && e.addend->raw_data() != out.raw_data())
    std::memcpy(out.raw_data(), e.addend->raw_data(), out.num_bytes());
  fused_conv_product(c, p, e, c.input(0).raw_data(), filter, out.data<float>());
  return true;
}

void fused_conv(KernelContext& c) {
  const Array& filter = c.input(1);
  const auto& sizes = c.attr<std::vector<std::int64_t>>("filter_sizes");
  const Array& plain = onednn::plain_weights(filter);
  const Shape filter_shape(sizes);
  if (!(plain.shape() == filter_shape)) {
    throw InvalidArgumentError(
        cat("The filter must have shape ", filter_shape, ", not ", plain.shape()));
  }
  const ConvCase p = forward_case(c, filter_shape, c.attr<bool>("depthwise"));
  const Epilogue e = read_epilogue(c, 2);
  check_bias(e, p.out_depth);
  const Shape shape = result_shape(p, e.addend);
  const bool same_size = shape == p.output_shape() && (!e.addend || e.addend->shape() == shape);
  const bool may_reuse = e.addend && same_size && e.addend->dtype() == c.output_dtype(0);
  Array& out = may_reuse ? c.reuse_or_allocate_output(e.bias ? 3 : 2, 0, shape)
                         : c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;

  if (!p.no_work() && same_size && (!e.addend || may_reuse) && library_takes(p)) {
    if (run_as_product(c, p, e, filter, out)) return;
    Array holder;
    const float* bias = float_bias(c, e.bias, out, holder);
    if (onednn::fused_conv(c, p, e, c.input(0).raw_data(), filter, bias, out)) return;
  }
  // The parts of it. The result may lie where the addend or the bias does.
  Array sums = c.allocate_temp(p.dtype, p.output_shape());
  run_conv(c, p, conv_forward, c.input(0), plain, sums);
  Epilogue own = e;
  Array bias, addend;
  const auto move_away = [&](const Array*& value, Array& copy) {
    if (!value || value->raw_data() != out.raw_data()) return;
    copy = c.allocate_temp(value->dtype(), value->shape());
    std::memcpy(copy.raw_data(), value->raw_data(), copy.num_bytes());
    value = &copy;
  };
  move_away(own.bias, bias);
  if (!may_reuse) move_away(own.addend, addend);
  apply_epilogue(c, own, sums, p.out_depth, out);
}

constexpr DTypeSet kTypes{DType::kFloat, DType::kBFloat16};

const KernelRegistration kFusedConv{{.op = "_FusedConv2D",
                                     .name = "oneDNN",
                                     .types = {{"T", kTypes}, {"Tout", kTypes}},
                                     .run = fused_conv}};

}  // namespace
}  // namespace tandem::cpu
