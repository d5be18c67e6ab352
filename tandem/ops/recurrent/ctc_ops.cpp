#include "tandem/ops/ctc_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem::nn {
namespace {

void loss_shape(InferenceContext& c) {
  c.require_rank(0, 3);
  c.require_rank(1, 2);
  c.require_rank(2, 1);
  c.require_rank(3, 1);
  c.merge_dim(c.input(1).dim(0), c.input(2).dim(0), "labels");
  const PartialShape& in = c.input(0);
  const std::int64_t batch = c.merge_dim(in.dim(1), c.input(3).dim(0), "batch");
  c.set_output(0, PartialShape({batch}));
  c.set_output(1, PartialShape({in.dim(0), batch, in.dim(2)}));
}

void decoded_shape(InferenceContext& c) {
  c.require_rank(0, 3);
  c.require_rank(1, 1);
  const std::int64_t batch = c.merge_dim(c.input(0).dim(1), c.input(1).dim(0), "batch");
  c.set_output(0, PartialShape({internal::kUnknown, 2}));
  c.set_output(1, PartialShape({internal::kUnknown}));
  c.set_output(2, PartialShape({2}));
  c.set_output(3, PartialShape({batch, 1}));
}

// The op computes the gradient along with the loss.
void loss_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, expand_dims(expand_dims(g.grad(), 0), -1) * g.output(1));
}

#define TANDEM_CTC                                                                \
  "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; " \
  "ignore_longer_outputs_than_inputs: bool = false"

const OpRegistration kLoss{
    {.name = "CTCLoss",
     .inputs = "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32",
     .outputs = "loss: T, gradient: T",
     .attrs = TANDEM_CTC "; T: {float, double} = float",
     .shape = loss_shape,
     .gradient = loss_grad,
     .doc = "The CTC loss of each sequence and its gradient; the last class is the blank."}};
const OpRegistration kLossV2{{.name = "CTCLossV2",
                              .inputs =
                                  "inputs: float, labels_indices: int64, labels_values: int32, "
                                  "sequence_length: int32",
                              .outputs = "loss: float, gradient: float",
                              .attrs = TANDEM_CTC,
                              .shape = loss_shape,
                              .gradient = loss_grad,
                              .doc = "CTCLoss whose blank is class 0."}};
const OpRegistration kGreedy{
    {.name = "CTCGreedyDecoder",
     .inputs = "inputs: T, sequence_length: int32",
     .outputs = "decoded_indices: int64, decoded_values: int64, decoded_shape: int64, "
                "log_probability: T",
     .attrs = "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float",
     .shape = decoded_shape,
     .gradient = not_differentiable,
     .doc = "The most probable class at each time, blanks left out."}};

void beams_shape(InferenceContext& c) {
  c.require_rank(0, 3);
  c.require_rank(1, 1);
  const std::int64_t batch = c.merge_dim(c.input(0).dim(1), c.input(1).dim(0), "batch");
  const auto paths = c.attr<std::int64_t>("top_paths");
  for (int k = 0; k < static_cast<int>(paths); ++k) {
    const auto n = static_cast<int>(paths);
    c.set_output(k, PartialShape({internal::kUnknown, 2}));
    c.set_output(n + k, PartialShape({internal::kUnknown}));
    c.set_output(2 * n + k, PartialShape({2}));
  }
  c.set_output(static_cast<int>(3 * paths), PartialShape({batch, paths}));
}

const OpRegistration kBeams{
    {.name = "CTCBeamSearchDecoder",
     .inputs = "inputs: T, sequence_length: int32",
     .outputs = "decoded_indices: top_paths * int64, decoded_values: top_paths * int64, "
                "decoded_shape: top_paths * int64, log_probability: T",
     .attrs = "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; "
              "T: {float, double} = float",
     .shape = beams_shape,
     .gradient = not_differentiable,
     .doc = "The most probable labellings that a beam search finds; the last class is the blank."}};

}  // namespace

Tensor ctc_loss(Tensor inputs, Tensor labels_indices, Tensor labels_values, Tensor sequence_length,
                const CtcLossOptions& options) {
  return call(
      kLoss,
      {std::move(inputs), std::move(labels_indices), std::move(labels_values),
       std::move(sequence_length)},
      {{"preprocess_collapse_repeated", options.preprocess_collapse_repeated},
       {"ctc_merge_repeated", options.ctc_merge_repeated},
       {"ignore_longer_outputs_than_inputs", options.ignore_longer_outputs_than_inputs}})[0];
}

std::vector<Tensor> ctc_greedy_decoder(Tensor inputs, Tensor sequence_length, bool merge_repeated,
                                       std::int64_t blank_index) {
  return call(kGreedy, {std::move(inputs), std::move(sequence_length)},
              {{"merge_repeated", merge_repeated}, {"blank_index", blank_index}});
}

std::vector<Tensor> ctc_beam_search_decoder(Tensor inputs, Tensor sequence_length,
                                            std::int64_t beam_width, std::int64_t top_paths) {
  return call(kBeams, {std::move(inputs), std::move(sequence_length)},
              {{"beam_width", beam_width}, {"top_paths", top_paths}, {"merge_repeated", false}});
}

}  // namespace tandem::nn
