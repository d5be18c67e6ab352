#include "tandem/keras/more_losses.h"

#include <limits>
#include <memory>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/ops/networks.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::losses {

Tensor ctc(const Tensor& y_true, const Tensor& y_pred) {
  if (y_true.rank() != 2 || y_pred.rank() != 3) {
    throw InvalidArgumentError(
        cat("ctc: labels must be [batch, length] and predictions [batch, steps, classes], got ",
            y_true.partial_shape(), " and ", y_pred.partial_shape(), "."));
  }
  const Tensor labels = cast(y_true, int32);
  const Tensor lengths = reduce_sum(cast(not_equal(labels, Tensor(0)), int32), {-1});
  const Tensor sizes = shape(y_pred);
  const Tensor steps = fill(IntList(reshape(sizes[0], {1})), sizes[1]);
  return ops::ctc_loss(labels, y_pred, lengths, steps, 0);
}

Tensor circle(const Tensor& y_true, const Tensor& y_pred, const CircleArguments& a) {
  if (y_pred.rank() != 2) {
    throw InvalidArgumentError(
        cat("circle: y_pred must be [batch, size], got ", y_pred.partial_shape(), "."));
  }
  const Tensor labels = reshape(cast(y_true, int32), {-1});
  const Tensor others = a.ref_labels.defined() ? reshape(cast(a.ref_labels, int32), {-1}) : labels;
  const Tensor embeddings = a.ref_embeddings.defined() ? a.ref_embeddings : y_pred;
  const Tensor distances = maximum(1.0 - matmul(y_pred, embeddings, {.transpose_b = true}), 0.0);
  Tensor same = equal(expand_dims(labels, 1), expand_dims(others, 0));
  const Tensor positive_pairs = same;
  if (a.remove_diagonal) {
    const Tensor rows = range(shape(labels)[0]), columns = range(shape(others)[0]);
    same = logical_and(same, not_equal(expand_dims(rows, 1), expand_dims(columns, 0)));
  }
  const DType dtype = distances.dtype();
  const Tensor positive = cast(same, dtype);
  const Tensor negative = cast(logical_not(positive_pairs), dtype);
  const Tensor positive_weights = maximum((a.margin + distances) * positive, 0.0);
  const Tensor negative_weights = maximum((1 + a.margin - distances) * negative, 0.0);
  const auto sum_of_exponentials = [&](const Tensor& mask, const Tensor& values) {
    const Tensor none = fill(IntList(shape(values)),
                             constant(Tensor(-std::numeric_limits<double>::infinity()), dtype));
    return reduce_logsumexp(where(cast(mask, DType::kBool), values, none), {1});
  };
  const Tensor p =
      sum_of_exponentials(positive, -a.gamma * positive_weights * (a.margin - distances));
  const Tensor n =
      sum_of_exponentials(negative, a.gamma * negative_weights * (1 - a.margin - distances));
  return nn::softplus(p + n);
}

Tensor categorical_generalized_cross_entropy(const Tensor& y_true, const Tensor& y_pred, double q) {
  const std::int64_t classes = y_pred.dim(-1);
  const Tensor labels = one_hot(cast(y_true, int64), classes, {.dtype = y_pred.dtype()});
  const Tensor p = reduce_sum(y_pred * labels, {-1});
  return (1.0 - pow(p, q)) / q;
}

namespace {

std::string named(const std::string& given, const char* standard) {
  return given.empty() ? standard : given;
}

// Values of 0 do not count in the mean.
class CircleLoss final : public LossImpl {
 public:
  explicit CircleLoss(const CircleOptions& o)
      : LossImpl(named(o.name, "circle"), o.reduction), options_(o) {}
  Tensor call(const Tensor& t, const Tensor& p) const override {
    return circle(t, p,
                  {.remove_diagonal = options_.remove_diagonal,
                   .gamma = options_.gamma,
                   .margin = options_.margin});
  }
  Tensor mask(const Tensor& t, const Tensor& p) const override { return call(t, p) > 0.0; }

 private:
  CircleOptions options_;
};

constexpr auto kPlain = [](auto& a, auto& o) { a("reduction", o.reduction); };
constexpr auto kCircle = [](auto& a, auto& o) {
  kPlain(a, o);
  a("gamma", o.gamma);
  a("margin", o.margin);
  a("remove_diagonal", o.remove_diagonal);
};
constexpr auto kGeneralized = [](auto& a, auto& o) {
  kPlain(a, o);
  a("q", o.q);
};

template <class List, class Options>
ConfigObject described(const Loss& loss, const char* class_name, const List& list,
                       const Options& o) {
  ConfigObject object{.class_name = class_name, .module = "keras.losses"};
  object.config.set("name", loss.name());
  internal::ArgumentWriter writer(object.config);
  list(writer, o);
  return object;
}

Loss::Function generalized(double q) {
  if (!(q > 0 && q < 1)) {
    throw InvalidArgumentError(
        cat("CategoricalGeneralizedCrossEntropy: q must be between 0 and 1, got ", q, "."));
  }
  return [q](const Tensor& t, const Tensor& p) {
    return categorical_generalized_cross_entropy(t, p, q);
  };
}

}  // namespace

CTC::CTC(const LossOptions& o) : Loss(from_function(named(o.name, "ctc"), ctc, o.reduction)) {
  made_of_ = described(*this, "CTC", kPlain, o);
}
Circle::Circle(const CircleOptions& o) : Loss(std::make_shared<CircleLoss>(o)) {
  made_of_ = described(*this, "Circle", kCircle, o);
}
CategoricalGeneralizedCrossEntropy::CategoricalGeneralizedCrossEntropy(
    const GeneralizedCrossEntropyOptions& o)
    : Loss(from_function(named(o.name, "categorical_generalized_cross_entropy"), generalized(o.q),
                         o.reduction)) {
  made_of_ = described(*this, "CategoricalGeneralizedCrossEntropy", kGeneralized, o);
}

namespace {

const bool kRegistered[] = {
    internal::register_class<Loss, CTC, LossOptions>("CTC", kPlain),
    internal::register_class<Loss, Circle, CircleOptions>("Circle", kCircle),
    internal::register_class<Loss, CategoricalGeneralizedCrossEntropy,
                             GeneralizedCrossEntropyOptions>("CategoricalGeneralizedCrossEntropy",
                                                             kGeneralized)};

}  // namespace
}  // namespace tandem::keras::losses
