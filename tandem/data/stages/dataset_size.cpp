#include <ostream>

#include "tandem/core/error.h"
#include "tandem/data/names.h"

namespace tandem::data {

std::int64_t size(const Dataset& dataset) {
  const std::int64_t count = dataset.cardinality();
  if (count >= 0) return count;
  throw InvalidArgumentError(
      count == kInfinite ? "The dataset has no end, so it has no size. take(n) cuts it."
                         : "The size of the dataset cannot be determined without iterating it; "
                           "assert_cardinality(n) states it.");
}

std::int64_t Dataset::size() const { return data::size(*this); }

std::ostream& operator<<(std::ostream& out, const Element& element) {
  out << '(';
  for (std::size_t i = 0; i < element.size(); ++i) out << (i == 0 ? "" : ", ") << element[i];
  return out << ')';
}

const Tensor& at(const Element& element, std::int64_t index) {
  const auto count = static_cast<std::int64_t>(element.size());
  if (index >= -count && index < count)
    return element[static_cast<std::size_t>(index < 0 ? index + count : index)];
  throw OutOfRangeError(
      cat("The element has ", count, " components, so there is no number ", index, "."));
}

const Tensor& at(const Dataset& dataset, const Element& element, const std::string& name) {
  const Names& names = dataset.names();
  for (std::size_t i = 0; i < names.size() && i < element.size(); ++i) {
    if (names[i] == name) return element[i];
  }
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "'" : ", '") + known + "'";
  throw NotFoundError(cat("There is no component '", name, "'; ",
                          names.empty() ? "the dataset has no names." : "there are " + all + "."));
}

}  // namespace tandem::data
