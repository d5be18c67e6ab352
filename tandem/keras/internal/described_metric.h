#pragma once

#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/metric.h"

namespace tandem::keras::internal {

/// What a metric was made with, for files.
template <class List, class Options>
ConfigObject described_metric(const Metric& metric, const char* class_name, const List& list,
                              const Options& o) {
  ConfigObject object{.class_name = class_name, .module = "keras.metrics"};
  object.config.set("name", metric.name());
  ArgumentWriter writer(object.config);
  list(writer, o);
  return object;
}

}  // namespace tandem::keras::internal
