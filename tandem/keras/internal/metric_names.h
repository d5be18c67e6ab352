#pragma once

#include <memory>
#include <string>

#include "tandem/core/shape.h"
#include "tandem/keras/metric.h"

namespace tandem::keras::internal {

/// "accuracy" and "acc", which stand for one of three.
bool is_accuracy(const std::string& name);

/// The metric of that name, named so; throws InvalidArgumentError listing all names.
std::shared_ptr<MetricImpl> make_metric(const std::string& name);

/// Binary for one output, sparse for class numbers, else categorical.
std::shared_ptr<MetricImpl> make_accuracy(const std::string& name, const PartialShape& y_true,
                                          const PartialShape& y_pred);

}  // namespace tandem::keras::internal
