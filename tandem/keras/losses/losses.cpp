#include "tandem/keras/losses.h"

#include <map>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/names.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"

namespace tandem::keras {
namespace losses {
namespace {

std::string named(const std::string& given, const char* standard) {
  return given.empty() ? standard : given;
}

Loss plain(const LossOptions& o, const char* name,
           Tensor (*function)(const Tensor&, const Tensor&)) {
  return Loss::from_function(named(o.name, name), function, o.reduction);
}

CrossentropyOptions arguments(const CrossentropyLossOptions& o) {
  return {.from_logits = o.from_logits, .label_smoothing = o.label_smoothing, .axis = o.axis};
}
FocalOptions arguments(const FocalLossOptions& o) {
  return {.alpha = o.alpha,
          .gamma = o.gamma,
          .apply_class_balancing = o.apply_class_balancing,
          .from_logits = o.from_logits,
          .label_smoothing = o.label_smoothing,
          .axis = o.axis};
}

class SparseLoss final : public LossImpl {
 public:
  explicit SparseLoss(const SparseCategoricalCrossentropyOptions& o)
      : LossImpl(named(o.name, "sparse_categorical_crossentropy"), o.reduction), options_(o) {}

  Tensor call(const Tensor& y_true, const Tensor& y_pred) const override {
    return sparse_categorical_crossentropy(y_true, y_pred, options_.from_logits,
                                           options_.ignore_class);
  }
  Tensor mask(const Tensor& y_true, const Tensor& y_pred) const override {
    if (!options_.ignore_class) return {};
    Tensor labels = cast(y_true, int64);
    if (labels.rank() == y_pred.rank() && labels.dim(-1) == 1) labels = squeeze(labels, {-1});
    return not_equal(labels, Tensor(*options_.ignore_class));
  }

 private:
  SparseCategoricalCrossentropyOptions options_;
};

// What a loss was made with, for files.
template <class List, class Options>
ConfigObject described(const Loss& loss, const char* class_name, const List& list,
                       const Options& o) {
  ConfigObject object{.class_name = class_name, .module = "keras.losses"};
  object.config.set("name", loss.name());
  internal::ArgumentWriter writer(object.config);
  list(writer, o);
  return object;
}

constexpr auto kPlain = [](auto& a, auto& o) { a("reduction", o.reduction); };
constexpr auto kHuber = [](auto& a, auto& o) {
  kPlain(a, o);
  a("delta", o.delta);
};
constexpr auto kAxis = [](auto& a, auto& o) {
  kPlain(a, o);
  a("axis", o.axis);
};
constexpr auto kEntropy = [](auto& a, auto& o) {
  kAxis(a, o);
  a("from_logits", o.from_logits);
  a("label_smoothing", o.label_smoothing);
};
constexpr auto kSparse = [](auto& a, auto& o) {
  kPlain(a, o);
  a("from_logits", o.from_logits);
  a("ignore_class", o.ignore_class);
  a.ignore("axis");
};
// Keras' binary loss alone can balance classes.
constexpr auto kFocal = [](auto& a, auto& o) {
  kEntropy(a, o);
  a("alpha", o.alpha);
  a("gamma", o.gamma);
};
constexpr auto kBinaryFocal = [](auto& a, auto& o) {
  kFocal(a, o);
  a("apply_class_balancing", o.apply_class_balancing);
};
constexpr auto kTversky = [](auto& a, auto& o) {
  kAxis(a, o);
  a("alpha", o.alpha);
  a("beta", o.beta);
};

}  // namespace

MeanSquaredError::MeanSquaredError(const LossOptions& o)
    : Loss(plain(o, "mean_squared_error", mean_squared_error)) {
  made_of_ = described(*this, "MeanSquaredError", kPlain, o);
}
MeanAbsoluteError::MeanAbsoluteError(const LossOptions& o)
    : Loss(plain(o, "mean_absolute_error", mean_absolute_error)) {
  made_of_ = described(*this, "MeanAbsoluteError", kPlain, o);
}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(const LossOptions& o)
    : Loss(plain(o, "mean_absolute_percentage_error", mean_absolute_percentage_error)) {
  made_of_ = described(*this, "MeanAbsolutePercentageError", kPlain, o);
}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(const LossOptions& o)
    : Loss(plain(o, "mean_squared_logarithmic_error", mean_squared_logarithmic_error)) {
  made_of_ = described(*this, "MeanSquaredLogarithmicError", kPlain, o);
}
LogCosh::LogCosh(const LossOptions& o) : Loss(plain(o, "log_cosh", log_cosh)) {
  made_of_ = described(*this, "LogCosh", kPlain, o);
}
Poisson::Poisson(const LossOptions& o) : Loss(plain(o, "poisson", poisson)) {
  made_of_ = described(*this, "Poisson", kPlain, o);
}
KLDivergence::KLDivergence(const LossOptions& o) : Loss(plain(o, "kl_divergence", kl_divergence)) {
  made_of_ = described(*this, "KLDivergence", kPlain, o);
}
Hinge::Hinge(const LossOptions& o) : Loss(plain(o, "hinge", hinge)) {
  made_of_ = described(*this, "Hinge", kPlain, o);
}
SquaredHinge::SquaredHinge(const LossOptions& o) : Loss(plain(o, "squared_hinge", squared_hinge)) {
  made_of_ = described(*this, "SquaredHinge", kPlain, o);
}
CategoricalHinge::CategoricalHinge(const LossOptions& o)
    : Loss(plain(o, "categorical_hinge", categorical_hinge)) {
  made_of_ = described(*this, "CategoricalHinge", kPlain, o);
}

Huber::Huber(const HuberOptions& o)
    : Loss(from_function(
          named(o.name, "huber_loss"),
          [delta = o.delta](const Tensor& t, const Tensor& p) { return huber(t, p, delta); },
          o.reduction)) {
  made_of_ = described(*this, "Huber", kHuber, o);
}
CosineSimilarity::CosineSimilarity(const CosineSimilarityOptions& o)
    : Loss(from_function(
          named(o.name, "cosine_similarity"),
          [axis = o.axis](const Tensor& t, const Tensor& p) {
            return cosine_similarity(t, p, axis);
          },
          o.reduction)) {
  made_of_ = described(*this, "CosineSimilarity", kAxis, o);
}

BinaryCrossentropy::BinaryCrossentropy(const CrossentropyLossOptions& o)
    : Loss(from_function(
          named(o.name, "binary_crossentropy"),
          [a = arguments(o)](const Tensor& t, const Tensor& p) {
            return binary_crossentropy(t, p, a);
          },
          o.reduction)) {
  made_of_ = described(*this, "BinaryCrossentropy", kEntropy, o);
}
CategoricalCrossentropy::CategoricalCrossentropy(const CrossentropyLossOptions& o)
    : Loss(from_function(
          named(o.name, "categorical_crossentropy"),
          [a = arguments(o)](const Tensor& t, const Tensor& p) {
            return categorical_crossentropy(t, p, a);
          },
          o.reduction)) {
  made_of_ = described(*this, "CategoricalCrossentropy", kEntropy, o);
}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    const SparseCategoricalCrossentropyOptions& o)
    : Loss(std::make_shared<SparseLoss>(o)) {
  made_of_ = described(*this, "SparseCategoricalCrossentropy", kSparse, o);
}
BinaryFocalCrossentropy::BinaryFocalCrossentropy(const FocalLossOptions& o)
    : Loss(from_function(
          named(o.name, "binary_focal_crossentropy"),
          [a = arguments(o)](const Tensor& t, const Tensor& p) {
            return binary_focal_crossentropy(t, p, a);
          },
          o.reduction)) {
  made_of_ = described(*this, "BinaryFocalCrossentropy", kBinaryFocal, o);
}
CategoricalFocalCrossentropy::CategoricalFocalCrossentropy(const FocalLossOptions& o)
    : Loss(from_function(
          named(o.name, "categorical_focal_crossentropy"),
          [a = arguments(o)](const Tensor& t, const Tensor& p) {
            return categorical_focal_crossentropy(t, p, a);
          },
          o.reduction)) {
  made_of_ = described(*this, "CategoricalFocalCrossentropy", kFocal, o);
}

Dice::Dice(const DiceOptions& o)
    : Loss(from_function(
          named(o.name, "dice"),
          [axis = o.axis](const Tensor& t, const Tensor& p) { return dice(t, p, axis); },
          o.reduction)) {
  made_of_ = described(*this, "Dice", kAxis, o);
}
Tversky::Tversky(const TverskyOptions& o)
    : Loss(from_function(
          named(o.name, "tversky"),
          [o](const Tensor& t, const Tensor& p) { return tversky(t, p, o.alpha, o.beta, o.axis); },
          o.reduction)) {
  made_of_ = described(*this, "Tversky", kTversky, o);
}

namespace {

template <class Class, class Options, class List>
bool add(const char* name, const List& list) {
  return internal::register_class<Loss, Class, Options>(name, list);
}

const bool kRegistered[] = {
    add<MeanSquaredError, LossOptions>("MeanSquaredError", kPlain),
    add<MeanAbsoluteError, LossOptions>("MeanAbsoluteError", kPlain),
    add<MeanAbsolutePercentageError, LossOptions>("MeanAbsolutePercentageError", kPlain),
    add<MeanSquaredLogarithmicError, LossOptions>("MeanSquaredLogarithmicError", kPlain),
    add<LogCosh, LossOptions>("LogCosh", kPlain),
    add<Poisson, LossOptions>("Poisson", kPlain),
    add<KLDivergence, LossOptions>("KLDivergence", kPlain),
    add<Hinge, LossOptions>("Hinge", kPlain),
    add<SquaredHinge, LossOptions>("SquaredHinge", kPlain),
    add<CategoricalHinge, LossOptions>("CategoricalHinge", kPlain),
    add<Huber, HuberOptions>("Huber", kHuber),
    add<CosineSimilarity, CosineSimilarityOptions>("CosineSimilarity", kAxis),
    add<BinaryCrossentropy, CrossentropyLossOptions>("BinaryCrossentropy", kEntropy),
    add<CategoricalCrossentropy, CrossentropyLossOptions>("CategoricalCrossentropy", kEntropy),
    add<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>(
        "SparseCategoricalCrossentropy", kSparse),
    add<BinaryFocalCrossentropy, FocalLossOptions>("BinaryFocalCrossentropy", kBinaryFocal),
    add<CategoricalFocalCrossentropy, FocalLossOptions>("CategoricalFocalCrossentropy", kFocal),
    add<Dice, DiceOptions>("Dice", kAxis),
    add<Tversky, TverskyOptions>("Tversky", kTversky)};

}  // namespace

}  // namespace losses

namespace {

using Maker = Loss (*)();
template <class T>
Loss make() {
  return T();
}

const std::map<std::string, Maker>& losses_by_name() {
  using namespace losses;
  using Table = std::map<std::string, Maker>;
  static const NeverDestroyed<Table> table([] {
    return Table{
        {"mean_squared_error", make<MeanSquaredError>},
        {"mse", make<MeanSquaredError>},
        {"mean_absolute_error", make<MeanAbsoluteError>},
        {"mae", make<MeanAbsoluteError>},
        {"mean_absolute_percentage_error", make<MeanAbsolutePercentageError>},
        {"mape", make<MeanAbsolutePercentageError>},
        {"mean_squared_logarithmic_error", make<MeanSquaredLogarithmicError>},
        {"msle", make<MeanSquaredLogarithmicError>},
        {"huber", make<Huber>},
        {"log_cosh", make<LogCosh>},
        {"logcosh", make<LogCosh>},
        {"cosine_similarity", make<CosineSimilarity>},
        {"poisson", make<Poisson>},
        {"kl_divergence", make<KLDivergence>},
        {"kld", make<KLDivergence>},
        {"hinge", make<Hinge>},
        {"squared_hinge", make<SquaredHinge>},
        {"categorical_hinge", make<CategoricalHinge>},
        {"binary_crossentropy", make<BinaryCrossentropy>},
        {"bce", make<BinaryCrossentropy>},
        {"binary_focal_crossentropy", make<BinaryFocalCrossentropy>},
        {"categorical_crossentropy", make<CategoricalCrossentropy>},
        {"categorical_focal_crossentropy", make<CategoricalFocalCrossentropy>},
        {"sparse_categorical_crossentropy", make<SparseCategoricalCrossentropy>},
        {"dice", make<Dice>},
        {"tversky", make<Tversky>},
    };
  });
  return *table;
}

}  // namespace

Loss::Loss(const std::string& name) {
  const auto& table = losses_by_name();
  auto found = table.find(name);
  if (found == table.end()) found = table.find(internal::snake_case(name));
  if (found == table.end()) {
    std::vector<std::string> names;
    for (const auto& entry : table) names.push_back(entry.first);
    throw InvalidArgumentError(
        cat(internal::no_such("loss", name, names), ", or give a function of y_true and y_pred."));
  }
  *this = found->second();
}

}  // namespace tandem::keras
