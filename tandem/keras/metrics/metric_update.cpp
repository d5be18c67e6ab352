#include "tandem/keras/internal/metric_update.h"

#include <cstdint>
#include <exception>

#include "tandem/core/error.h"

namespace tandem::keras::internal {
namespace {

std::string described(const Tensor& t) {
  return t.defined() ? cat(t.dtype(), t.partial_shape()) : "undefined";
}

bool sizes_differ(std::int64_t a, std::int64_t b) { return a >= 0 && b >= 0 && a != b; }

// What to change, as far as the shapes say; else nothing.
std::string remedy(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  if (!y_true.defined()) return "give the labels";
  const PartialShape labels = y_true.partial_shape(), predictions = y_pred.partial_shape();
  if (labels.rank() < 0 || predictions.rank() < 0) return "";
  if (predictions.rank() == 0 || labels.rank() == 0)
    return "give both an axis of examples: td::reshape(x, {1, -1})";
  if (sizes_differ(labels[0], predictions[0])) return "give as many labels as predictions";
  if (sample_weight.defined() && sample_weight.rank() > 0 &&
      sizes_differ(sample_weight.dim(0), predictions[0]))
    return "give one weight for each example";
  const std::int64_t classes = predictions[-1];
  const bool numbers = labels.rank() + 1 == predictions.rank() ||
                       (labels.rank() == predictions.rank() && labels[-1] == 1);
  if (numbers && classes > 1) {
    return cat(
        "if the labels are class numbers, use a metric that takes those "
        "(SparseCategoricalAccuracy) or give it td::one_hot(labels, ",
        classes, ")");
  }
  if (labels.rank() == predictions.rank() + 1 ||
      (labels.rank() == predictions.rank() && sizes_differ(labels[-1], classes))) {
    return cat("end the model with as many outputs as the labels have, ", labels[-1],
               ", or, if they are one-hot, give it their class numbers, td::argmax(labels, -1)");
  }
  if (labels.rank() == predictions.rank() && classes > 1) {
    return "if the labels are one-hot and the metric takes class numbers, give it "
           "td::argmax(labels, -1)";
  }
  return "";
}

}  // namespace

void update_metric(MetricImpl& metric, const std::string& name, const Tensor& y_true,
                   const Tensor& y_pred, const Tensor& sample_weight) {
  try {
    metric.update_state(y_true, y_pred, sample_weight);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    const std::string what =
        code_of(error) == Code::kInvalidArgument ? remedy(y_true, y_pred, sample_weight) : "";
    std::rethrow_exception(with_line(
        error,
        cat("in metric '", name, "' of y_true ", described(y_true), ", y_pred ", described(y_pred),
            sample_weight.defined() ? cat(", sample_weight ", described(sample_weight)) : "",
            what.empty() ? "" : ": ", what)));
  }
}

}  // namespace tandem::keras::internal
