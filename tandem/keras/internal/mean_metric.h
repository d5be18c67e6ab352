#pragma once

#include <string>

#include "tandem/keras/metric.h"

namespace tandem::keras::internal {

/// The weighted mean of a function's values over all examples; without a function, of what is given
/// as predictions.
class MeanMetric : public MetricImpl {
 public:
  MeanMetric(std::string name, Metric::Function function,
             Direction direction = Direction::kUnknown);

  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight) override;
  /// Adds a sum of values that `count` examples gave.
  void add(const Tensor& sum, const Tensor& count);
  Tensor result() const override;

 private:
  Metric::Function function_;
  Variable total_;
  Variable count_;
};

/// `given`, or `standard` if that is empty.
std::string name_or(const std::string& given, const char* standard);

}  // namespace tandem::keras::internal
