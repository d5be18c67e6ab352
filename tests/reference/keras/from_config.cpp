#include "tests/reference/keras/from_config.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>

#include <tandem/tandem.h>

namespace reference {

using namespace tandem::keras;
using Json = nlohmann::json;

Arguments::~Arguments() noexcept(false) {
  if (std::uncaught_exceptions() > 0 || !config_.is_object()) return;
  for (const auto& entry : config_.items()) {
    if (std::find(used_.begin(), used_.end(), entry.key()) == used_.end()) {
      throw std::runtime_error("the test does not know the argument " + entry.key());
    }
  }
}

const Json* Arguments::find(const char* name) {
  used_.emplace_back(name);
  const auto found = config_.find(name);
  return found == config_.end() ? nullptr : &*found;
}

void Arguments::take(const char* name, ActivationFunction& into) {
  if (const Json* value = find(name)) into = ActivationFunction(value->get<std::string>());
}
void Arguments::take(const char* name, Regularizer& into) {
  if (const Json* value = find(name)) into = Regularizer(value->get<std::string>());
}

namespace {

template <class Key>
[[noreturn]] void unknown(const char* kind, const Key& name) {
  throw std::runtime_error(std::string("the test does not know the ") + kind + " " + name);
}

Reduction reduction_of(const std::string& name) {
  if (name == "sum_over_batch_size") return Reduction::kSumOverBatchSize;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  if (name == "mean_with_sample_weight") return Reduction::kMeanWithSampleWeight;
  if (name == "none") return Reduction::kNone;
  unknown("reduction", name);
}

template <class Options>
Options entropy(Arguments& a) {
  Options o;
  a.take("from_logits", o.from_logits);
  a.take("label_smoothing", o.label_smoothing);
  return o;
}

losses::FocalLossOptions focal(Arguments& a) {
  auto o = entropy<losses::FocalLossOptions>(a);
  a.take("alpha", o.alpha);
  a.take("gamma", o.gamma);
  a.take("apply_class_balancing", o.apply_class_balancing);
  return o;
}

}  // namespace

Loss make_loss(const std::string& name, const Json& config) {
  if (config.empty()) return Loss(name);  // by name, or by the class' default
  Arguments a(config);
  Reduction reduction = Reduction::kSumOverBatchSize;
  if (const Json* value = a.find("reduction")) reduction = reduction_of(value->get<std::string>());
  if (name == "MeanSquaredError") return losses::MeanSquaredError({.reduction = reduction});
  if (name == "Huber") return losses::Huber({.delta = a.taken<double>("delta")});
  if (name == "CosineSimilarity")
    return losses::CosineSimilarity({.axis = a.taken<std::int64_t>("axis")});
  if (name == "BinaryCrossentropy" || name == "CategoricalCrossentropy") {
    auto o = entropy<losses::CrossentropyLossOptions>(a);
    a.take("axis", o.axis);
    if (name == "BinaryCrossentropy") return losses::BinaryCrossentropy(o);
    return losses::CategoricalCrossentropy(o);
  }
  if (name == "SparseCategoricalCrossentropy") {
    losses::SparseCategoricalCrossentropyOptions o{.reduction = reduction};
    a.take("from_logits", o.from_logits);
    a.take("ignore_class", o.ignore_class);
    return losses::SparseCategoricalCrossentropy(o);
  }
  if (name == "BinaryFocalCrossentropy") return losses::BinaryFocalCrossentropy(focal(a));
  if (name == "CategoricalFocalCrossentropy") return losses::CategoricalFocalCrossentropy(focal(a));
  if (name == "Dice") return losses::Dice({.axis = a.taken<std::vector<std::int64_t>>("axis")});
  if (name == "Tversky") {
    losses::TverskyOptions o;
    a.take("alpha", o.alpha);
    a.take("beta", o.beta);
    return losses::Tversky(o);
  }
  unknown("loss", name);
}

namespace {

template <class M>
M plain() {
  return M();
}

const std::map<std::string, std::function<Metric()>>& plain_metrics() {
  static const std::map<std::string, std::function<Metric()>> table = {
      {"Mean", plain<metrics::Mean>},
      {"Sum", plain<metrics::Sum>},
      {"MeanSquaredError", plain<metrics::MeanSquaredError>},
      {"RootMeanSquaredError", plain<metrics::RootMeanSquaredError>},
      {"MeanAbsoluteError", plain<metrics::MeanAbsoluteError>},
      {"MeanAbsolutePercentageError", plain<metrics::MeanAbsolutePercentageError>},
      {"MeanSquaredLogarithmicError", plain<metrics::MeanSquaredLogarithmicError>},
      {"CosineSimilarity", plain<metrics::CosineSimilarity>},
      {"LogCoshError", plain<metrics::LogCoshError>},
      {"Poisson", plain<metrics::Poisson>},
      {"KLDivergence", plain<metrics::KLDivergence>},
      {"Hinge", plain<metrics::Hinge>},
      {"SquaredHinge", plain<metrics::SquaredHinge>},
      {"CategoricalHinge", plain<metrics::CategoricalHinge>},
      {"Accuracy", plain<metrics::Accuracy>},
      {"CategoricalAccuracy", plain<metrics::CategoricalAccuracy>},
      {"SparseCategoricalAccuracy", plain<metrics::SparseCategoricalAccuracy>},
  };
  return table;
}

std::vector<double> thresholds(Arguments& a) {
  const Json* value = a.find("thresholds");
  if (!value) return {};
  return value->is_array() ? value->get<std::vector<double>>()
                           : std::vector<double>{value->get<double>()};
}

}  // namespace

Metric make_metric(const std::string& name, const Json& config) {
  Arguments a(config);
  if (const auto found = plain_metrics().find(name); found != plain_metrics().end())
    return found->second();
  if (name == "BinaryCrossentropy") {
    return metrics::BinaryCrossentropy(entropy<metrics::CrossentropyMetricOptions>(a));
  }
  if (name == "CategoricalCrossentropy") {
    return metrics::CategoricalCrossentropy(entropy<metrics::CrossentropyMetricOptions>(a));
  }
  if (name == "SparseCategoricalCrossentropy") {
    return metrics::SparseCategoricalCrossentropy(entropy<metrics::CrossentropyMetricOptions>(a));
  }
  if (name == "BinaryAccuracy") {
    metrics::BinaryAccuracyOptions o;
    a.take("threshold", o.threshold);
    return metrics::BinaryAccuracy(o);
  }
  if (name == "TopKCategoricalAccuracy")
    return metrics::TopKCategoricalAccuracy({.k = a.taken<std::int64_t>("k")});
  if (name == "SparseTopKCategoricalAccuracy") {
    return metrics::SparseTopKCategoricalAccuracy({.k = a.taken<std::int64_t>("k")});
  }
  if (name == "TruePositives") return metrics::TruePositives({.thresholds = thresholds(a)});
  if (name == "TrueNegatives") return metrics::TrueNegatives({.thresholds = thresholds(a)});
  if (name == "FalsePositives") return metrics::FalsePositives({.thresholds = thresholds(a)});
  if (name == "FalseNegatives") return metrics::FalseNegatives({.thresholds = thresholds(a)});
  if (name == "Precision" || name == "Recall") {
    metrics::PrecisionOptions o{.thresholds = thresholds(a)};
    a.take("top_k", o.top_k);
    a.take("class_id", o.class_id);
    if (name == "Precision") return metrics::Precision(o);
    return metrics::Recall(o);
  }
  if (name == "AUC") {
    metrics::AUCOptions o;
    a.take("num_thresholds", o.num_thresholds);
    a.take("curve", o.curve);
    a.take("summation_method", o.summation_method);
    a.take("from_logits", o.from_logits);
    return metrics::AUC(o);
  }
  unknown("metric", name);
}

LearningRateSchedule make_schedule(const std::string& name, const Json& config) {
  Arguments a(config);
  if (name == "PiecewiseConstantDecay") {
    const auto boundaries = a.taken<std::vector<std::int64_t>>("boundaries");
    return schedules::PiecewiseConstantDecay(boundaries, a.taken<std::vector<double>>("values"));
  }
  const auto rate = a.taken<double>("initial_learning_rate");
  if (name == "CosineDecayRestarts") {
    schedules::CosineDecayRestartsOptions o{
        .initial_learning_rate = rate, .first_decay_steps = a.taken<double>("first_decay_steps")};
    a.take("t_mul", o.t_mul);
    a.take("m_mul", o.m_mul);
    a.take("alpha", o.alpha);
    return schedules::CosineDecayRestarts(o);
  }
  const auto steps = a.taken<double>("decay_steps");
  if (name == "PolynomialDecay") {
    schedules::PolynomialDecayOptions o{.initial_learning_rate = rate, .decay_steps = steps};
    a.take("end_learning_rate", o.end_learning_rate);
    a.take("power", o.power);
    a.take("cycle", o.cycle);
    return schedules::PolynomialDecay(o);
  }
  if (name == "CosineDecay") {
    schedules::CosineDecayOptions o{.initial_learning_rate = rate, .decay_steps = steps};
    a.take("alpha", o.alpha);
    a.take("warmup_target", o.warmup_target);
    a.take("warmup_steps", o.warmup_steps);
    return schedules::CosineDecay(o);
  }
  schedules::DecayOptions o{.initial_learning_rate = rate,
                            .decay_steps = steps,
                            .decay_rate = a.taken<double>("decay_rate")};
  a.take("staircase", o.staircase);
  if (name == "ExponentialDecay") return schedules::ExponentialDecay(o);
  if (name == "InverseTimeDecay") return schedules::InverseTimeDecay(o);
  unknown("schedule", name);
}

namespace {

template <class Options>
Options optimizer_options(Arguments& a, const Json& schedule) {
  Options o;
  double rate = 0;
  a.take("learning_rate", rate);
  if (rate > 0) o.learning_rate = rate;
  if (!schedule.is_null())
    o.learning_rate = make_schedule(schedule.at("class"), schedule.at("config"));
  a.take("weight_decay", o.weight_decay);
  a.take("clipnorm", o.clipnorm);
  a.take("clipvalue", o.clipvalue);
  a.take("global_clipnorm", o.global_clipnorm);
  return o;
}

template <class Options>
Options adam_options(Arguments& a, const Json& schedule) {
  auto o = optimizer_options<Options>(a, schedule);
  a.take("beta_1", o.beta_1);
  a.take("beta_2", o.beta_2);
  a.take("epsilon", o.epsilon);
  return o;
}

}  // namespace

Optimizer make_optimizer(const std::string& name, const Json& config, const Json& schedule) {
  using namespace optimizers;
  Arguments a(config);
  if (name == "SGD") {
    auto o = optimizer_options<SGDOptions>(a, schedule);
    a.take("momentum", o.momentum);
    a.take("nesterov", o.nesterov);
    return SGD(o);
  }
  if (name == "Adam") {
    auto o = adam_options<AdamOptions>(a, schedule);
    a.take("amsgrad", o.amsgrad);
    return Adam(o);
  }
  if (name == "AdamW") {
    auto o = adam_options<AdamWOptions>(a, schedule);
    a.take("amsgrad", o.amsgrad);
    return AdamW(o);
  }
  if (name == "RMSprop") {
    auto o = optimizer_options<RMSpropOptions>(a, schedule);
    a.take("rho", o.rho);
    a.take("momentum", o.momentum);
    a.take("centered", o.centered);
    return RMSprop(o);
  }
  if (name == "Adagrad") {
    auto o = optimizer_options<AdagradOptions>(a, schedule);
    a.take("initial_accumulator_value", o.initial_accumulator_value);
    return Adagrad(o);
  }
  if (name == "Adadelta") return Adadelta(optimizer_options<AdadeltaOptions>(a, schedule));
  if (name == "Adamax") return Adamax(adam_options<AdamLikeOptions>(a, schedule));
  if (name == "Nadam") return Nadam(adam_options<AdamLikeOptions>(a, schedule));
  unknown("optimizer", name);
}

Initializer make_initializer(const std::string& name, const Json& config) {
  using namespace initializers;
  if (config.empty()) return Initializer(name);
  Arguments a(config);
  if (name == "Constant") return Constant(a.taken<double>("value"));
  if (name == "Identity") return initializers::Identity(a.taken<double>("gain"));
  if (name == "VarianceScaling") {
    VarianceScalingOptions o;
    a.take("scale", o.scale);
    a.take("mode", o.mode);
    a.take("distribution", o.distribution);
    return VarianceScaling(o);
  }
  if (name == "RandomUniform") {
    RandomUniformOptions o;
    a.take("minval", o.minval);
    a.take("maxval", o.maxval);
    return RandomUniform(o);
  }
  RandomNormalOptions o;
  a.take("mean", o.mean);
  a.take("stddev", o.stddev);
  if (name == "RandomNormal") return RandomNormal(o);
  if (name == "TruncatedNormal") return TruncatedNormal(o);
  unknown("initializer", name);
}

Model make_model(const std::string& name) {
  clear_session();
  if (name == "mlp") {
    return Sequential{Input({6}), Dense(5, {.activation = "relu"}),
                      Dense(3, {.activation = "softmax"})};
  }
  if (name == "cnn") {
    return Sequential{Input({6, 6, 1}),
                      Conv2D(3, 3, {.padding = "same"}),
                      BatchNormalization(),
                      Activation("relu"),
                      MaxPooling2D(),
                      Flatten(),
                      Dense(3)};
  }
  if (name == "half_cnn") {
    return Sequential{Input({6, 6, 1}),
                      Conv2D(3, 3, {.padding = "same"}),
                      BatchNormalization(),
                      Activation("relu"),
                      MaxPooling2D(),
                      Flatten(),
                      Dense(3, {.activation = "softmax", .dtype = "float32"})};
  }
  if (name == "regression") {
    return Sequential{Input({4}), Dense(6, {.activation = "tanh", .kernel_regularizer = "l2"}),
                      Dense(1)};
  }
  if (name == "binary") {
    return Sequential{Input({4}), Dense(3, {.activation = "gelu"}),
                      Dense(1, {.activation = "sigmoid"})};
  }
  if (name == "attention") {
    const KerasTensor tokens = Input({5}, {.dtype = tandem::int32, .name = "tokens"});
    KerasTensor x = Embedding(8, 6)(tokens);
    const KerasTensor y = MultiHeadAttention(2, 3)(x, x);
    x = LayerNormalization()(Add()({x, y}));
    x = Flatten()(x);
    return Model(tokens, Dense(2, {.activation = "softmax"})(x));
  }
  if (name == "tagger") {
    return Sequential{Input({5}, {.dtype = tandem::int32, .name = "tokens"}),
                      Embedding(8, 4, {.mask_zero = true}),
                      Bidirectional(LSTM(3, {.return_sequences = true})), Dropout(0),
                      Dense(3, {.activation = "softmax"})};
  }
  if (name == "summed") {
    const KerasTensor x = Input({4, 3}, {.name = "steps"});
    const KerasTensor masked = Masking()(x);
    const KerasTensor a = GRU(4, {.return_sequences = true})(masked);
    const KerasTensor b = TimeDistributed(Dense(4))(masked);
    KerasTensor y = LayerNormalization()(Add()({a, b}));
    y = MultiHeadAttention(2, 3)(y, y);
    y = GlobalAveragePooling1D()(y);
    return Model(x, Dense(1)(y));
  }
  if (name == "classifier") {
    return Sequential{Input({4, 3}), LSTM(4, {.return_sequences = true}), LSTM(3),
                      Dense(2, {.activation = "softmax"})};
  }
  unknown("model", name);
}

}  // namespace reference
