#include "tandem/keras/internal/metric_names.h"

#include <map>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/metrics.h"

namespace tandem::keras::internal {
namespace {

using Maker = std::shared_ptr<MetricImpl> (*)(const std::string& name);

// Every options struct has a name.
template <class T, class Options>
std::shared_ptr<MetricImpl> make(const std::string& name) {
  Options options;
  options.name = name;
  return T(options).resolve({}, {});
}

const std::map<std::string, Maker>& metrics_by_name() {
  using namespace metrics;
  using Entropy = CrossentropyMetricOptions;
  using Table = std::map<std::string, Maker>;
  static const NeverDestroyed<Table> table([] {
    return Table{
        {"mean", make<Mean, MetricOptions>},
        {"sum", make<Sum, MetricOptions>},
        {"mean_squared_error", make<MeanSquaredError, MetricOptions>},
        {"mse", make<MeanSquaredError, MetricOptions>},
        {"root_mean_squared_error", make<RootMeanSquaredError, MetricOptions>},
        {"rmse", make<RootMeanSquaredError, MetricOptions>},
        {"mean_absolute_error", make<MeanAbsoluteError, MetricOptions>},
        {"mae", make<MeanAbsoluteError, MetricOptions>},
        {"mean_absolute_percentage_error", make<MeanAbsolutePercentageError, MetricOptions>},
        {"mape", make<MeanAbsolutePercentageError, MetricOptions>},
        {"mean_squared_logarithmic_error", make<MeanSquaredLogarithmicError, MetricOptions>},
        {"msle", make<MeanSquaredLogarithmicError, MetricOptions>},
        {"cosine_similarity", make<CosineSimilarity, MetricOptions>},
        {"log_cosh_error", make<LogCoshError, MetricOptions>},
        {"logcosh", make<LogCoshError, MetricOptions>},
        {"poisson", make<Poisson, MetricOptions>},
        {"kl_divergence", make<KLDivergence, MetricOptions>},
        {"hinge", make<Hinge, MetricOptions>},
        {"squared_hinge", make<SquaredHinge, MetricOptions>},
        {"categorical_hinge", make<CategoricalHinge, MetricOptions>},
        {"binary_crossentropy", make<BinaryCrossentropy, Entropy>},
        {"bce", make<BinaryCrossentropy, Entropy>},
        {"categorical_crossentropy", make<CategoricalCrossentropy, Entropy>},
        {"sparse_categorical_crossentropy", make<SparseCategoricalCrossentropy, Entropy>},
        {"binary_accuracy", make<BinaryAccuracy, BinaryAccuracyOptions>},
        {"categorical_accuracy", make<CategoricalAccuracy, MetricOptions>},
        {"sparse_categorical_accuracy", make<SparseCategoricalAccuracy, MetricOptions>},
        {"top_k_categorical_accuracy", make<TopKCategoricalAccuracy, TopKOptions>},
        {"sparse_top_k_categorical_accuracy", make<SparseTopKCategoricalAccuracy, TopKOptions>},
        {"true_positives", make<TruePositives, CountOptions>},
        {"true_negatives", make<TrueNegatives, CountOptions>},
        {"false_positives", make<FalsePositives, CountOptions>},
        {"false_negatives", make<FalseNegatives, CountOptions>},
        {"precision", make<Precision, PrecisionOptions>},
        {"recall", make<Recall, PrecisionOptions>},
        {"auc", make<AUC, AUCOptions>},
    };
  });
  return *table;
}

}  // namespace

bool is_accuracy(const std::string& name) { return name == "accuracy" || name == "acc"; }

std::shared_ptr<MetricImpl> make_metric(const std::string& name) {
  const auto& table = metrics_by_name();
  auto found = table.find(name);
  if (found == table.end()) found = table.find(name == "AUC" ? "auc" : snake_case(name));
  if (found == table.end()) {
    std::vector<std::string> names{"accuracy"};
    for (const auto& entry : table) names.push_back(entry.first);
    throw InvalidArgumentError(
        cat(no_such("metric", name, names), ", or give a function of y_true and y_pred."));
  }
  return found->second(name);
}

std::shared_ptr<MetricImpl> make_accuracy(const std::string& name, const PartialShape& y_true,
                                          const PartialShape& y_pred) {
  const std::int64_t classes = y_pred.rank() > 0 ? y_pred.dim(-1) : -1;
  const bool one_label = y_true.rank() > 0 && y_true.dim(-1) == 1;
  if (classes == 1) return make<metrics::BinaryAccuracy, metrics::BinaryAccuracyOptions>(name);
  if (y_true.rank() < y_pred.rank() || (one_label && classes > 1)) {
    return make<metrics::SparseCategoricalAccuracy, metrics::MetricOptions>(name);
  }
  return make<metrics::CategoricalAccuracy, metrics::MetricOptions>(name);
}

}  // namespace tandem::keras::internal
