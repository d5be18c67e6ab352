#include "tandem/keras/activations.h"

#include <map>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/keras/internal/logits.h"
#include "tandem/keras/internal/names.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace activations {

Tensor relu(const Tensor& x, const ReluOptions& o) {
  if (o.negative_slope != 0 && !o.max_value && o.threshold == 0)
    return leaky_relu(x, o.negative_slope);
  Tensor y;
  if (o.threshold != 0) {
    y = x * cast(x > o.threshold, x.dtype());
  } else if (o.max_value && *o.max_value == 6) {
    y = nn::relu6(x);
  } else {
    y = nn::relu(x);
    if (o.max_value) y = minimum(y, *o.max_value);
  }
  if (o.threshold != 0 && o.max_value) y = clip_by_value(y, 0.0, *o.max_value);
  if (o.negative_slope != 0) y = y - nn::relu(o.threshold - x) * o.negative_slope;
  return y;
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return nn::leaky_relu(x, static_cast<float>(negative_slope));
}

Tensor softmax(const Tensor& x, std::int64_t axis) {
  Tensor y = nn::softmax(x, axis);
  if (axis == -1 || axis == x.rank() - 1)
    internal::attach_logits(internal::LogitsKind::kSoftmax, y, x);
  return y;
}

Tensor sigmoid(const Tensor& x) {
  Tensor y = tandem::sigmoid(x);
  internal::attach_logits(internal::LogitsKind::kSigmoid, y, x);
  return y;
}

Tensor elu(const Tensor& x, double alpha) {
  Tensor y = nn::elu(x);
  return alpha == 1 ? y : where(x > 0, y, y * alpha);
}
Tensor celu(const Tensor& x, double alpha) {
  return maximum(x, 0) + math::expm1(minimum(x, 0) / alpha) * alpha;
}
Tensor gelu(const Tensor& x, bool approximate) { return nn::gelu(x, approximate); }

Tensor glu(const Tensor& x, std::int64_t axis) {
  const std::vector<Tensor> halves = split(x, 2, axis);
  return halves[0] * tandem::sigmoid(halves[1]);
}

Tensor hard_shrink(const Tensor& x, double threshold) {
  return where(tandem::abs(x) > threshold, x, zeros_like(x));
}
Tensor hard_sigmoid(const Tensor& x) { return nn::relu6(x + 3) / 6; }
Tensor hard_silu(const Tensor& x) { return x * hard_sigmoid(x); }
Tensor hard_tanh(const Tensor& x) { return clip_by_value(x, -1, 1); }
Tensor mish(const Tensor& x) { return x * tandem::tanh(nn::softplus(x)); }
Tensor soft_shrink(const Tensor& x, double threshold) {
  return where(x > threshold, x - threshold, where(x < -threshold, x + threshold, zeros_like(x)));
}
Tensor sparse_plus(const Tensor& x) {
  return where(x <= -1, zeros_like(x), where(x < 1, square(x + 1) / 4, x));
}
Tensor sparse_sigmoid(const Tensor& x) {
  return where(x <= -1, zeros_like(x), where(x >= 1, ones_like(x), (x + 1) * 0.5));
}

Tensor sparsemax(const Tensor& x, std::int64_t axis) {
  const int rank = x.rank();
  if (rank < 1) throw InvalidArgumentError("sparsemax needs a tensor of known rank, 1 or more.");
  const int last = normalize_axis(axis, rank);
  if (last != rank - 1) {  // the axis changes places with the last one, and back again
    std::vector<std::int64_t> perm;
    for (int i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[static_cast<std::size_t>(last)], perm.back());
    return transpose(sparsemax(transpose(x, perm)), perm);
  }
  const std::int64_t classes = x.dim(-1);
  if (classes < 1) {
    throw InvalidArgumentError(
        cat("sparsemax needs to know the size of its axis; the input has shape ", x.partial_shape(),
            "."));
  }
  // The support is the longest beginning of the sorted values with 1 + k z_k > z_1 + … + z_k.
  const Tensor sorted = top_k(x, classes).values;
  const Tensor sums = cumsum(sorted, -1);
  const Tensor places = cast(range(Tensor(classes)) + std::int64_t{1}, x.dtype());
  const Tensor inside = cast(places * sorted + 1 > sums, x.dtype());
  const Tensor count = reduce_sum(inside, -1, true);
  const Tensor sum = reduce_sum(sorted * inside, -1, true);
  return maximum(x - (sum - 1) / count, 0);
}

Tensor exponential(const Tensor& x) { return exp(x); }
Tensor hard_swish(const Tensor& x) { return hard_silu(x); }
Tensor linear(const Tensor& x) { return x; }
Tensor log_sigmoid(const Tensor& x) { return math::log_sigmoid(x); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) { return nn::log_softmax(x, axis); }
Tensor relu6(const Tensor& x) { return nn::relu6(x); }
Tensor selu(const Tensor& x) { return nn::selu(x); }
Tensor silu(const Tensor& x) { return nn::silu(x); }
Tensor swish(const Tensor& x) { return nn::silu(x); }
Tensor softplus(const Tensor& x) { return nn::softplus(x); }
Tensor softsign(const Tensor& x) { return nn::softsign(x); }
Tensor tanh(const Tensor& x) { return tandem::tanh(x); }
Tensor squareplus(const Tensor& x, double b) { return (x + sqrt(square(x) + b)) / 2; }
Tensor tanh_shrink(const Tensor& x) { return x - tandem::tanh(x); }
Tensor threshold(const Tensor& x, double threshold, double default_value) {
  return where(x > threshold, x, fill(shape(x), constant(Tensor(default_value), x.dtype())));
}

}  // namespace activations

namespace {

const std::map<std::string, ActivationFunction::Function>& activations_by_name() {
  using namespace activations;
  using Table = std::map<std::string, ActivationFunction::Function>;
  static const NeverDestroyed<Table> table([] {
    return Table{
        {"celu", [](const Tensor& x) { return celu(x); }},
        {"elu", [](const Tensor& x) { return elu(x); }},
        {"exponential", [](const Tensor& x) { return exp(x); }},
        {"gelu", [](const Tensor& x) { return gelu(x); }},
        {"glu", [](const Tensor& x) { return glu(x); }},
        {"hard_shrink", [](const Tensor& x) { return hard_shrink(x); }},
        {"hard_sigmoid", hard_sigmoid},
        {"hard_silu", hard_silu},
        {"hard_swish", hard_silu},
        {"hard_tanh", hard_tanh},
        {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
        {"linear", nullptr},
        {"log_sigmoid", [](const Tensor& x) { return math::log_sigmoid(x); }},
        {"log_softmax", [](const Tensor& x) { return nn::log_softmax(x); }},
        {"mish", mish},
        {"relu", [](const Tensor& x) { return nn::relu(x); }},
        {"relu6", [](const Tensor& x) { return nn::relu6(x); }},
        {"selu", [](const Tensor& x) { return nn::selu(x); }},
        {"sigmoid", [](const Tensor& x) { return activations::sigmoid(x); }},
        {"silu", [](const Tensor& x) { return nn::silu(x); }},
        {"soft_shrink", [](const Tensor& x) { return soft_shrink(x); }},
        {"softmax", [](const Tensor& x) { return softmax(x); }},
        {"softplus", [](const Tensor& x) { return nn::softplus(x); }},
        {"softsign", [](const Tensor& x) { return nn::softsign(x); }},
        {"sparse_plus", sparse_plus},
        {"sparse_sigmoid", sparse_sigmoid},
        {"sparsemax", [](const Tensor& x) { return sparsemax(x); }},
        {"squareplus", [](const Tensor& x) { return squareplus(x); }},
        {"swish", [](const Tensor& x) { return nn::silu(x); }},
        {"tanh", [](const Tensor& x) { return tandem::tanh(x); }},
        {"tanh_shrink", tanh_shrink},
    };
  });
  return *table;
}

}  // namespace

ActivationFunction::ActivationFunction(const std::string& name) : name_(name) {
  const auto& table = activations_by_name();
  const auto found = table.find(name);
  if (found == table.end()) {
    std::vector<std::string> names;
    for (const auto& entry : table) names.push_back(entry.first);
    throw InvalidArgumentError(
        cat(internal::no_such("activation", name, names), ", or give a function."));
  }
  function_ = found->second;
}

namespace {

// The functions that users may give, by address.
const std::map<const void*, const char*>& names_by_address() {
  static const NeverDestroyed<std::map<const void*, const char*>> table([] {
    std::map<const void*, const char*> names;
    const auto add = [&]<class Function>(Function* function, const char* name) {
      names.emplace(reinterpret_cast<const void*>(function), name);
    };
    add(&activations::celu, "celu");
    add(&activations::elu, "elu");
    add(&activations::exponential, "exponential");
    add(&activations::gelu, "gelu");
    add(&activations::glu, "glu");
    add(&activations::hard_shrink, "hard_shrink");
    add(&activations::hard_sigmoid, "hard_sigmoid");
    add(&activations::hard_silu, "hard_silu");
    add(&activations::hard_swish, "hard_swish");
    add(&activations::hard_tanh, "hard_tanh");
    add(&activations::leaky_relu, "leaky_relu");
    add(&activations::linear, "linear");
    add(&activations::log_sigmoid, "log_sigmoid");
    add(&activations::log_softmax, "log_softmax");
    add(&activations::mish, "mish");
    add(&activations::relu, "relu");
    add(&activations::relu6, "relu6");
    add(&activations::selu, "selu");
    add(&activations::sigmoid, "sigmoid");
    add(&activations::silu, "silu");
    add(&activations::soft_shrink, "soft_shrink");
    add(&activations::softmax, "softmax");
    add(&activations::softplus, "softplus");
    add(&activations::softsign, "softsign");
    add(&activations::sparse_plus, "sparse_plus");
    add(&activations::sparse_sigmoid, "sparse_sigmoid");
    add(&activations::sparsemax, "sparsemax");
    add(&activations::squareplus, "squareplus");
    add(&activations::swish, "swish");
    add(&activations::tanh, "tanh");
    add(&activations::tanh_shrink, "tanh_shrink");
    add(&nn::elu, "elu");
    add(&nn::leaky_relu, "leaky_relu");
    add(&nn::log_softmax, "log_softmax");
    add(&nn::relu, "relu");
    add(&nn::relu6, "relu6");
    add(&nn::selu, "selu");
    add(&nn::silu, "silu");
    add(&nn::softmax, "softmax");
    add(&nn::softplus, "softplus");
    add(&nn::softsign, "softsign");
    add(&nn::swish, "swish");
    add(&tandem::exp, "exponential");
    add(&tandem::sigmoid, "sigmoid");
    add(&tandem::tanh, "tanh");
    add(&math::log_sigmoid, "log_sigmoid");
    return names;
  });
  return *table;
}

[[noreturn]] void throw_further_arguments() {
  throw InvalidArgumentError(
      "An activation takes one tensor, and this function has further arguments. Give a lambda: "
      "[](const td::Tensor& x) { return function(x, …); }.");
}

}  // namespace

bool ActivationFunction::find(const void* address) {
  const auto found = names_by_address().find(address);
  if (found == names_by_address().end()) return false;
  *this = ActivationFunction(std::string(found->second));
  return true;
}

ActivationFunction::ActivationFunction(Tensor (*function)(Tensor)) {
  if (find(reinterpret_cast<const void*>(function))) return;
  name_ = "custom";
  function_ = function;
}
ActivationFunction::ActivationFunction(Tensor (*function)(const Tensor&)) {
  if (find(reinterpret_cast<const void*>(function))) return;
  name_ = "custom";
  function_ = function;
}
ActivationFunction::ActivationFunction(Tensor (*function)(const Tensor&, bool)) {
  if (!find(reinterpret_cast<const void*>(function))) throw_further_arguments();
}
ActivationFunction::ActivationFunction(Tensor (*function)(const Tensor&, double)) {
  if (!find(reinterpret_cast<const void*>(function))) throw_further_arguments();
}
ActivationFunction::ActivationFunction(Tensor (*function)(const Tensor&, std::int64_t)) {
  if (!find(reinterpret_cast<const void*>(function))) throw_further_arguments();
}
ActivationFunction::ActivationFunction(Tensor (*function)(const Tensor&,
                                                          const activations::ReluOptions&)) {
  if (!find(reinterpret_cast<const void*>(function))) throw_further_arguments();
}
ActivationFunction::ActivationFunction(Tensor (*function)(Tensor, float)) {
  if (!find(reinterpret_cast<const void*>(function))) throw_further_arguments();
}
ActivationFunction::ActivationFunction(Tensor (*function)(Tensor, std::int64_t)) {
  if (!find(reinterpret_cast<const void*>(function))) throw_further_arguments();
}

}  // namespace tandem::keras
