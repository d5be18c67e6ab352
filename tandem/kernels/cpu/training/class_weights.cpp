#include "tandem/kernels/cpu/training/class_weights.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/kernels/cpu/random/distributions.h"

namespace tandem::cpu {
namespace {

// A number below n, all equally frequent.
std::uint32_t below(PhiloxNumbers& next, std::uint32_t n) {
  if ((n & (n - 1)) == 0) return next() & (n - 1);
  const std::uint32_t first = ~std::uint32_t{0} % n + 1;
  std::uint32_t x = next();
  while (x < first) x = next();
  return x % n;
}

// The last column of each line.
std::vector<float> weights_in(const std::string& path) {
  const std::string text = fs::read_file(path);
  std::vector<float> weights;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const std::string_view whole = line;
    line.remove_prefix(line.rfind(',') + 1);  // npos + 1 is 0
    while (!line.empty() && (line.front() == ' ' || line.front() == '+')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    float weight = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), weight);
    if (error != std::errc() || stop != line.data() + line.size()) {
      throw InvalidArgumentError(cat("Wrong vocabulary format at line: ", whole));
    }
    weights.push_back(weight);
  }
  return weights;
}

}  // namespace

std::vector<float> class_weights(const KernelContext& c) {
  const auto& path = c.attr<std::string>("vocab_file");
  const auto& unigrams = c.attr<std::vector<float>>("unigrams");
  if (path.empty() == unigrams.empty()) {
    throw InvalidArgumentError("Must provide either vocab_file or unigrams, and not both.");
  }
  const auto range = c.attr<std::int64_t>("range_max");
  const auto shards = c.attr<std::int64_t>("num_shards"), shard = c.attr<std::int64_t>("shard");
  const auto reserved = c.attr<std::int64_t>("num_reserved_ids");
  const float distortion = c.attr<float>("distortion");
  std::vector<float> weights;
  for (std::int64_t id = 0; id < reserved && id / shards <= range; ++id) {
    if (id % shards == shard) weights.push_back(0);
  }
  auto id = static_cast<std::int64_t>(weights.size());
  double total = 0;
  for (const float weight : path.empty() ? unigrams : weights_in(path)) {
    if (id++ % shards != shard) continue;
    weights.push_back(std::pow(weight, distortion));
    if (!(weights.back() >= 0) || std::isinf(weights.back())) {
      throw InvalidArgumentError(cat("A weight must be finite and not negative: ", weight));
    }
    total += weights.back();
  }
  if (static_cast<std::int64_t>(weights.size()) != range) {
    throw InvalidArgumentError(
        cat("range is ", range, " must be equal to weights size  ", weights.size()));
  }
  if (!(total > 0)) throw InvalidArgumentError("All weights are 0.");
  return weights;
}

GivenClasses::GivenClasses(std::vector<float> weights) : weights_(std::move(weights)) {
  double sum = 0;
  for (const float weight : weights_) {
    sum += weight;
    total_ += weight;
    possible_ += weight > 0 ? 1 : 0;
  }
  // Shares of a place: those below one are filled up by those above, the last of each first.
  const auto n = static_cast<float>(weights_.size());
  std::vector<double> share;
  std::vector<std::size_t> high, low;
  for (const float weight : weights_) {
    share.push_back(static_cast<double>(weight * n) / sum);
    (share.back() < 1.0 ? low : high).push_back(share.size() - 1);
  }
  places_.resize(weights_.size(), {1.0f, -1});
  while (!high.empty() && !low.empty()) {
    const std::size_t l = low.back(), h = high.back();
    low.pop_back();
    high.pop_back();
    places_[l] = {static_cast<float>(share[l]), static_cast<std::int64_t>(h)};
    share[h] -= 1.0 - share[l];
    (share[h] < 1.0 ? low : high).push_back(h);
  }
  for (const auto* rest : {&high, &low}) {
    for (const std::size_t i : *rest) places_[i] = {1.0f, static_cast<std::int64_t>(i)};
  }
}

std::int64_t GivenClasses::operator()(PhiloxNumbers& next) const {
  const float number = unit_float(next());
  const std::uint32_t at = below(next, static_cast<std::uint32_t>(places_.size()));
  return number < places_[at].limit ? at : places_[at].above;
}

LearnedClasses::LearnedClasses(std::int64_t range) {
  if (range >= std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgumentError(cat("range_max must be less than 2^31 - 1, got ", range));
  }
  const auto n = static_cast<std::size_t>(range);
  while (first_ < n) first_ *= 2;
  sums_.assign(2 * first_, 0);
  for (std::size_t i = 0; i < n; ++i) sums_[first_ + i] = 1;
  for (std::size_t i = first_; i-- > 1;) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
}

std::int64_t LearnedClasses::operator()(PhiloxNumbers& next) const {
  auto position = static_cast<std::int32_t>(below(next, static_cast<std::uint32_t>(sums_[1])));
  std::size_t node = 1;
  while (node < first_) {
    node *= 2;
    if (position >= sums_[node]) position -= sums_[node++];
  }
  return static_cast<std::int64_t>(node - first_);
}

void LearnedClasses::add(std::int64_t value) {
  if (sums_[1] == std::numeric_limits<std::int32_t>::max()) return;
  for (std::size_t node = first_ + static_cast<std::size_t>(value); node > 0; node /= 2) {
    ++sums_[node];
  }
}

}  // namespace tandem::cpu
