#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/io/internal/summary_values.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::io {

std::vector<double> to_doubles(const Array& values) {
  std::vector<double> doubles(static_cast<std::size_t>(values.num_elements()));
  cpu::with_real(values.dtype(), [&]<class T>() {
    const T* from = values.data<T>();
    for (std::size_t i = 0; i < doubles.size(); ++i)
      doubles[i] = static_cast<double>(cpu::widen(from[i]));
  });
  return doubles;
}

Array histogram_buckets(const Array& values, std::int64_t count) {
  std::vector<double> finite = to_doubles(values);
  std::erase_if(finite, [](double value) { return !std::isfinite(value); });
  Array buckets = Array::zeros(DType::kDouble, Shape{count, 3});
  if (count == 0 || finite.empty()) return buckets;
  const auto [least, greatest] = std::minmax_element(finite.begin(), finite.end());
  const double left = *least, right = *greatest;
  // Half of the range at a time, which may exceed what a double holds.
  const double width = 2 * (right / 2 - left / 2) / static_cast<double>(count);
  auto* row = buckets.data<double>();
  if (!(width > 0)) {
    for (std::int64_t i = 0; i < count; ++i) row[3 * i] = row[3 * i + 1] = left;
    row[3 * count - 1] = static_cast<double>(finite.size());
    return buckets;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    row[3 * i] = left + width * static_cast<double>(i);
    row[3 * i + 1] = i + 1 == count ? right : left + width * static_cast<double>(i + 1);
  }
  for (const double value : finite) {
    const auto bucket = static_cast<std::int64_t>((value - left) / width);
    row[3 * std::clamp<std::int64_t>(bucket, 0, count - 1) + 2] += 1;
  }
  return buckets;
}

namespace {

const std::vector<double>& exponential_limits() {
  static const NeverDestroyed<std::vector<double>> limits([] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> all;
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  });
  return *limits;
}

// Runs of empty buckets are written as one.
void write_buckets(const std::vector<double>& counts, proto::HistogramProto& proto) {
  const std::vector<double>& limits = exponential_limits();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool empty = counts[i] <= 0;
    while (empty && i + 1 < counts.size() && counts[i + 1] <= 0) ++i;
    proto.bucket_limit.push_back(limits[i]);
    proto.bucket.push_back(counts[i]);
  }
}

}  // namespace

proto::HistogramProto exponential_histogram(const std::string& tag, const Array& values) {
  const std::vector<double>& limits = exponential_limits();
  std::vector<double> counts(limits.size());
  proto::HistogramProto proto;
  proto.min = std::numeric_limits<double>::max();
  proto.max = std::numeric_limits<double>::lowest();
  for (const double value : to_doubles(values)) {
    if (std::isnan(value)) throw InvalidArgumentError(cat("Nan in summary histogram for: ", tag));
    if (std::isinf(value))
      throw InvalidArgumentError(cat("Infinity in summary histogram for: ", tag));
    const auto limit = std::upper_bound(limits.begin(), limits.end() - 1, value);
    counts[static_cast<std::size_t>(limit - limits.begin())] += 1;
    proto.min = std::min(proto.min, value);
    proto.max = std::max(proto.max, value);
    proto.num += 1;
    proto.sum += value;
    proto.sum_squares += value * value;
  }
  write_buckets(counts, proto);
  return proto;
}

}  // namespace tandem::io
