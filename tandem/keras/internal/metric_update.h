#pragma once

#include <string>

#include "tandem/keras/metric.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// `metric.update_state`, whose error gets a line that names the metric as `name`, what it was
/// given and, where the shapes give it away, what to change.
void update_metric(MetricImpl& metric, const std::string& name, const Tensor& y_true,
                   const Tensor& y_pred, const Tensor& sample_weight);

}  // namespace tandem::keras::internal
