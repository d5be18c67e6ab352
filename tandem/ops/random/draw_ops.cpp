// Gamma, Poisson and binomial variates.

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/op_seeds.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

// The shape asked for, followed by that of the parameters.
void stateful_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  const PartialShape samples = internal::requested_shape(c, 0);
  const PartialShape& parameters = c.input(1);
  if (!samples.has_rank() || !parameters.has_rank()) {
    return c.set_output(0, PartialShape::unknown());
  }
  std::vector<std::int64_t> dims = samples.dims();
  dims.insert(dims.end(), parameters.dims().begin(), parameters.dims().end());
  c.set_output(0, PartialShape(std::move(dims)));
}

void seeded_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.merge_dim(c.input(1).has_rank() ? c.input(1).dim(0) : internal::kUnknown, 2,
              "seed must have 2 elements; sizes");
  c.set_output(0, internal::requested_shape(c, 0));
}

void keyed_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  c.require_rank(3, 0);
  c.set_output(0, internal::requested_shape(c, 0));
}

void generator_shape(InferenceContext& c) {
  c.require_rank(2, 1);
  c.set_output(0, internal::requested_shape(c, 2));
}

// Draws follow their parameter: the derivative is implicit, as that of the distribution.
template <int kAlpha>
void gamma_grad(GradientContext& g) {
  if (!g.needs(kAlpha)) return;
  const Tensor& alpha = g.input(kAlpha);
  Tensor slope = internal::op1("RandomGammaGrad", {alpha, g.output()});
  g.set(kAlpha, sum_to_shape_of(g.grad() * std::move(slope), alpha));
}

#define TANDEM_SEEDS "seed: int = 0; seed2: int = 0; S: index; "
#define TANDEM_DRAWN "{half, float, double, int32, int64}"

constexpr OpTraits kStateful{.stateful = true, .keeps_state = true, .host_inputs = 1};

const OpRegistration kGamma{{.name = "RandomGamma",
                             .inputs = "shape: S, alpha: T",
                             .outputs = "output: T",
                             .attrs = TANDEM_SEEDS "T: {half, float, double}",
                             .shape = stateful_shape,
                             .gradient = gamma_grad<1>,
                             .traits = kStateful,
                             .doc = "Gamma variates of scale 1, so many for each shape alpha."}};
const OpRegistration kGammaV2{{.name = "StatelessRandomGammaV2",
                               .inputs = "shape: T, seed: Tseed, alpha: dtype",
                               .outputs = "output: dtype",
                               .attrs = "dtype: {half, float, double}; T: index; "
                                        "Tseed: index = int64",
                               .shape = seeded_shape,
                               .gradient = gamma_grad<2>,
                               .traits = {.host_inputs = 0b11},
                               .doc = "Gamma variates that follow from the seed; the shape ends "
                                      "with alpha's."}};
const OpRegistration kGammaV3{
    {.name = "StatelessRandomGammaV3",
     .inputs = "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: {half, float, double}; shape_dtype: index = int32",
     .shape = keyed_shape,
     .gradient = gamma_grad<4>,
     .traits = {.host_inputs = 0b1111},
     .doc = "Gamma variates that follow from key and counter; the shape ends with alpha's."}};

const OpRegistration kPoisson1{{.name = "RandomPoisson",
                                .inputs = "shape: S, rate: dtype",
                                .outputs = "output: dtype",
                                .attrs = TANDEM_SEEDS "dtype: {half, float, double}",
                                .shape = stateful_shape,
                                .gradient = not_differentiable,
                                .traits = kStateful,
                                .doc = "RandomPoissonV2 of older graphs."}};
const OpRegistration kPoisson{
    {.name = "RandomPoissonV2",
     .inputs = "shape: S, rate: R",
     .outputs = "output: dtype",
     .attrs = TANDEM_SEEDS "R: " TANDEM_DRAWN " = double; dtype: " TANDEM_DRAWN " = int64",
     .shape = stateful_shape,
     .gradient = not_differentiable,
     .traits = kStateful,
     .doc = "Poisson variates, so many for each rate."}};
const OpRegistration kStatelessPoisson{
    {.name = "StatelessRandomPoisson",
     .inputs = "shape: T, seed: Tseed, lam: Rtype",
     .outputs = "output: dtype",
     .attrs = "Rtype: " TANDEM_DRAWN "; dtype: " TANDEM_DRAWN "; T: index; Tseed: index = int64",
     .shape = seeded_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11},
     .doc = "Poisson variates that follow from the seed; the shape ends with that of the rates."}};

const OpRegistration kStatelessBinomial{
    {.name = "StatelessRandomBinomial",
     .inputs = "shape: S, seed: Tseed, counts: T, probs: T",
     .outputs = "output: dtype",
     .attrs = "S: index; Tseed: index = int64; T: " TANDEM_DRAWN " = double; dtype: " TANDEM_DRAWN
              " = int64",
     .shape = seeded_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11},
     .doc = "Binomial variates that follow from the seed; the shape ends with that of counts and "
            "probs."}};
const OpRegistration kStatefulBinomial{
    {.name = "StatefulRandomBinomial",
     .inputs = "resource: resource, algorithm: int64, shape: S, counts: T, probs: T",
     .outputs = "output: dtype",
     .attrs = "S: index; T: " TANDEM_DRAWN " = double; dtype: " TANDEM_DRAWN " = int64",
     .shape = generator_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .host_inputs = 0b110},
     .doc = "Binomial variates from the generator whose state a variable keeps."}};

void truncated_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.set_output(0, internal::requested_shape(c, 0));
}

const OpRegistration kTruncated{
    {.name = "ParameterizedTruncatedNormal",
     .inputs = "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: floats; T: index",
     .shape = truncated_shape,
     .gradient = not_differentiable,
     .traits = kStateful,
     .doc = "Normal numbers between bounds; the parameters are scalars or have one element for "
            "each row."}};

}  // namespace

namespace random {

Tensor gamma(const IntList& shape, Tensor alpha, std::optional<std::int64_t> seed) {
  return call1(kGamma, {shape.tensor(), std::move(alpha)}, internal::op_seeds(seed));
}

Tensor gamma(const IntList& shape, const Tensor& alpha, const GammaOptions& options) {
  if (!options.beta.defined()) return gamma(shape, alpha, options.seed);
  const Tensor beta = cast(options.beta, alpha.dtype());
  return gamma(shape, alpha + zeros_like(beta), options.seed) / beta;
}

Tensor poisson(const IntList& shape, Tensor rate, DType dtype, std::optional<std::int64_t> seed) {
  AttrMap attrs = internal::op_seeds(seed);
  attrs.set("dtype", dtype);
  return call1(kPoisson, {shape.tensor(), std::move(rate)}, attrs);
}

Tensor stateless_gamma(const IntList& shape, const IntList& seed, Tensor alpha) {
  return call1(kGammaV2, {shape.tensor(), seed.tensor(), std::move(alpha)});
}

Tensor stateless_poisson(const IntList& shape, const IntList& seed, Tensor rate, DType dtype) {
  return call1(kStatelessPoisson, {shape.tensor(), seed.tensor(), std::move(rate)},
               {{"dtype", dtype}});
}

Tensor stateless_binomial(const IntList& shape, const IntList& seed, Tensor counts, Tensor probs,
                          DType dtype) {
  if (!is_floating(counts.dtype())) counts = cast(std::move(counts), probs.dtype());
  return call1(kStatelessBinomial,
               {shape.tensor(), seed.tensor(), std::move(counts), std::move(probs)},
               {{"dtype", dtype}});
}

}  // namespace random
}  // namespace tandem
