#pragma once

// Names of tf.data and tf.io that are declared elsewhere or that other types have here.

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/element.h"
#include "tandem/data/explain.h"
#include "tandem/data/file_datasets.h"

namespace tandem::data {

inline constexpr std::int64_t AUTOTUNE = kAutotune;              // NOLINT: TensorFlow's name
inline constexpr std::int64_t INFINITE_CARDINALITY = kInfinite;  // NOLINT
inline constexpr std::int64_t UNKNOWN_CARDINALITY = kUnknown;    // NOLINT

/// What the elements of a dataset are like, as a value.
struct DatasetSpec {
  ElementSpec element_spec = {};
  static DatasetSpec from_value(const Dataset& dataset) { return {dataset.element_spec()}; }
  bool operator==(const DatasetSpec&) const = default;
};
/// What the elements of an iterator are like.
struct IteratorSpec {
  ElementSpec element_spec = {};
  bool operator==(const IteratorSpec&) const = default;
};

/// TensorFlow's older paths.
namespace experimental {

using data::AutoShardPolicy;
using data::AUTOTUNE;
using data::INFINITE_CARDINALITY;
using data::UNKNOWN_CARDINALITY;

/// `dataset.apply(ignore_errors())` and the like.
inline auto ignore_errors(IgnoreErrorsOptions options = {}) {
  return [options = std::move(options)](const Dataset& dataset) {
    return dataset.ignore_errors(options);
  };
}
inline auto assert_cardinality(std::int64_t expected) {
  return [expected](const Dataset& dataset) { return dataset.assert_cardinality(expected); };
}
inline std::int64_t cardinality(const Dataset& dataset) { return dataset.cardinality(); }

}  // namespace experimental

/// The number of elements, as Dataset::cardinality, for code that asks any collection for its size.
/// Throws InvalidArgumentError where there is no such number: the dataset has no end, or only
/// iterating it would show.
TANDEM_EXPORT std::int64_t size(const Dataset& dataset);

/// `zip(a, b)`, as `zip({a, b})`.
template <std::same_as<Dataset>... D>
requires(sizeof...(D) > 0) Dataset zip(const Dataset& first, const D&... others) {
  return zip(std::vector<Dataset>{first, others...});
}

/// The components' values in parentheses, "([1. 2.], 3)".
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const Element& element);

/// Component `index` of an element, counted from the end if negative, where `element[index]` would
/// not look. Throws OutOfRangeError that says how many there are.
TANDEM_EXPORT const Tensor& at(const Element& element, std::int64_t index);
/// The component that the dataset calls `name`. Throws NotFoundError that says which names there
/// are.
TANDEM_EXPORT const Tensor& at(const Dataset& dataset, const Element& element,
                               const std::string& name);

}  // namespace tandem::data

namespace tandem::io {

using data::TFRecordWriter;
using TFRecordOptions = data::TFRecordWriterOptions;

}  // namespace tandem::io

namespace tandem {

using data::explain;
using data::TensorSpec;

}  // namespace tandem
