// Grey-scale dilation, and pooling that says where the largest values were. Called by name, or from
// the functions of pool_ops.h's kind that graphs are imported for.

#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/window.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;
using Ints = std::vector<std::int64_t>;

void argmax_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  WindowAttrs w;
  w.set_ksize(c.attr<Ints>("ksize"));
  w.set_strides(c.attr<Ints>("strides"));
  w.set_padding(c.attr<std::string>("padding"), {});
  const PartialShape& in = c.input(0);
  const PartialShape out({in.dim(0), w.axis(0, in.dim(1), w.ksize[0]).output,
                          w.axis(1, in.dim(2), w.ksize[1]).output, in.dim(3)});
  c.set_output(0, out);
  c.set_output(1, out);
}

void as_first_of_rank_4(InferenceContext& c) {
  c.require_rank(0, 4);
  c.set_output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::unknown_of_rank(4));
}
void as_filter(InferenceContext& c) {
  c.require_rank(1, 3);
  c.set_output(0, c.input(1).has_rank() ? c.input(1) : PartialShape::unknown_of_rank(3));
}

void dilation_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 3);
  WindowAttrs w;
  w.set_strides(c.attr<Ints>("strides"));
  w.set_dilations(c.attr<Ints>("rates"));
  w.set_padding(c.attr<std::string>("padding"), {});
  const PartialShape &in = c.input(0), &filter = c.input(1);
  c.set_output(0, PartialShape({in.dim(0), w.axis(0, in.dim(1), filter.dim(0)).output,
                                w.axis(1, in.dim(2), filter.dim(1)).output,
                                c.merge_dim(in.dim(3), filter.dim(2), "the depth")}));
}

AttrMap only(const GradientContext& g, std::initializer_list<const char*> names) {
  AttrMap attrs;
  for (const char* name : names) attrs.set(name, *g.find_attr(name));
  return attrs;
}

void argmax_grad(GradientContext& g) {
  g.set(0, op1("MaxPoolGradWithArgmax", {g.input(0), g.grad(0), g.output(1)},
               only(g, {"ksize", "strides", "padding", "include_batch_in_index"})));
}

void dilation_grad(GradientContext& g) {
  const AttrMap attrs = only(g, {"strides", "rates", "padding"});
  const Tensor grad = g.grad();
  if (g.needs(0)) g.set(0, op1("Dilation2DBackpropInput", {g.input(0), g.input(1), grad}, attrs));
  if (g.needs(1)) g.set(1, op1("Dilation2DBackpropFilter", {g.input(0), g.input(1), grad}, attrs));
}

#define TANDEM_ARGMAX                                                                      \
  "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; T: reals; " \
  "include_batch_in_index: bool = false; "
#define TANDEM_DILATION \
  "T: reals; strides: list(int) >= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}"

const OpRegistration kArgmax{{.name = "MaxPoolWithArgmax",
                              .inputs = "input: T",
                              .outputs = "output: T, argmax: Targmax",
                              .attrs = TANDEM_ARGMAX "Targmax: {int32, int64} = int64",
                              .shape = argmax_shape,
                              .gradient = argmax_grad,
                              .flops = flops::pool,
                              .doc = "The largest value of each window and its place, counted "
                                     "within its image or the whole batch."}};
const OpRegistration kArgmaxGrad{{.name = "MaxPoolGradWithArgmax",
                                  .inputs = "input: T, grad: T, argmax: Targmax",
                                  .outputs = "output: T",
                                  .attrs = TANDEM_ARGMAX "Targmax: {int32, int64}",
                                  .shape = as_first_of_rank_4,
                                  .doc = "The gradient of MaxPoolWithArgmax."}};
const OpRegistration kDilation{{.name = "Dilation2D",
                                .inputs = "input: T, filter: T",
                                .outputs = "output: T",
                                .attrs = TANDEM_DILATION,
                                .shape = dilation_shape,
                                .gradient = dilation_grad,
                                .flops = flops::conv<>,
                                .doc = "The largest sum of image and filter under each window."}};
const OpRegistration kDilationInput{{.name = "Dilation2DBackpropInput",
                                     .inputs = "input: T, filter: T, out_backprop: T",
                                     .outputs = "in_backprop: T",
                                     .attrs = TANDEM_DILATION,
                                     .shape = as_first_of_rank_4,
                                     .flops = flops::conv_backprop_input<>,
                                     .doc = "The gradient of Dilation2D towards the image."}};
const OpRegistration kDilationFilter{{.name = "Dilation2DBackpropFilter",
                                      .inputs = "input: T, filter: T, out_backprop: T",
                                      .outputs = "filter_backprop: T",
                                      .attrs = TANDEM_DILATION,
                                      .shape = as_filter,
                                      .flops = flops::conv_backprop_input<>,
                                      .doc = "The gradient of Dilation2D towards the filter."}};

}  // namespace
}  // namespace tandem
