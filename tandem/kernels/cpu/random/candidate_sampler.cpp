// Sampled candidates, for losses that look at some of very many classes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/random.h"
#include "tandem/kernels/cpu/training/class_weights.h"

namespace tandem::cpu {
namespace {

// Classes from [0, range), each with a probability of its own.
struct UniformClasses {
  std::int64_t range;
  std::int64_t operator()(PhiloxNumbers& next) const {
    const auto n = static_cast<std::uint64_t>(range);
    const auto draw = [&] {
      const std::uint32_t low = next();
      return Philox::join(low, next());
    };
    if ((n & (n - 1)) == 0) return static_cast<std::int64_t>(draw() & (n - 1));
    // Below this, remainders would not be equally frequent.
    const std::uint64_t first = ~std::uint64_t{0} % n + 1;
    std::uint64_t x = draw();
    while (x < first) x = draw();
    return static_cast<std::int64_t>(x % n);
  }
  float probability(std::int64_t) const {
    return static_cast<float>(1.0 / static_cast<double>(range));
  }
};

struct LogUniformClasses {
  std::int64_t range;
  double log_range = std::log1p(static_cast<double>(range));
  std::int64_t operator()(PhiloxNumbers& next) const {
    const std::uint32_t x0 = next();
    const double wide = std::exp(unit_double(x0, next()) * log_range);
    return (static_cast<std::int64_t>(wide) - 1) % range;
  }
  float probability(std::int64_t value) const {
    const auto x = static_cast<double>(value);
    return static_cast<float>(std::log((x + 2.0) / (x + 1.0)) / log_range);
  }
};

// How often a class is to be expected among so many, for which `tries` draws were needed.
float expected_count(float probability, std::int64_t count, std::int64_t tries) {
  if (tries == count) return probability * static_cast<float>(count);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-probability));
}

struct Request {
  std::int64_t count = 0;
  bool unique = false;
};

// Checks what all samplers do, and allocates their outputs.
Request check(KernelContext& c, std::int64_t range) {
  const Array& classes = c.input(0);
  const auto columns = c.attr<std::int64_t>("num_true");
  const Request request{c.attr<std::int64_t>("num_sampled"), c.attr<bool>("unique")};
  if (classes.rank() != 2) {
    throw InvalidArgumentError(cat("true_classes must be a matrix, got shape ", classes.shape()));
  }
  if (classes.shape()[1] != columns) {
    throw InvalidArgumentError(cat("true_classes must have num_true columns, expected: ", columns,
                                   " was: ", classes.shape()[1]));
  }
  if (request.unique && request.count > range) {
    throw InvalidArgumentError(
        cat("Sampler's range is too small: ", range, " for ", request.count, " unique samples."));
  }
  for (const std::int64_t value : classes.values<std::int64_t>()) {
    if (value < 0 || value >= range) {
      throw InvalidArgumentError(
          cat("`true_candidate` out of range [0, ", range, "), received ", value));
    }
  }
  c.allocate_output(0, Shape{request.count});
  c.allocate_output(1, classes.shape());
  c.allocate_output(2, Shape{request.count});
  return request;
}

template <class Classes>
void draw(KernelContext& c, const Request& request, const Classes& classes) {
  // 2048 numbers for each.
  PhiloxNumbers next(reserve_blocks(c, static_cast<std::uint64_t>(request.count) * 512));
  auto* sampled = c.output(0).data<std::int64_t>();
  std::unordered_set<std::int64_t> seen;
  std::int64_t tries = 0;
  for (std::int64_t i = 0; i < request.count; ++tries) {
    const std::int64_t value = classes(next);
    if (!request.unique || seen.insert(value).second) sampled[i++] = value;
    if (c.cancellation() != nullptr && tries % 65536 == 0) c.cancellation()->check();
  }
  const auto counts = [&](const Array& of, Array& to) {
    const auto* from = of.data<std::int64_t>();
    for (std::int64_t i = 0; i < of.num_elements(); ++i) {
      to.data<float>()[i] = expected_count(classes.probability(from[i]), request.count, tries);
    }
  };
  counts(c.input(0), c.output(1));
  counts(c.output(0), c.output(2));
}

template <class Classes>
void sample(KernelContext& c) {
  const Classes classes{c.attr<std::int64_t>("range_max")};
  draw(c, check(c, classes.range), classes);
}

void sample_given(KernelContext& c) {
  const Ref<RefCounted> kept = beside_stream(c, [](const KernelContext& first) {
    return Ref<RefCounted>(make_ref<GivenClasses>(class_weights(first)));
  });
  const auto& classes = static_cast<const GivenClasses&>(*kept);
  const Request request = check(c, c.attr<std::int64_t>("range_max"));
  if (request.unique && request.count > classes.possible()) {
    throw InvalidArgumentError(cat("There are ", classes.possible(),
                                   " classes of a weight above 0, too few for ", request.count,
                                   " unique samples."));
  }
  draw(c, request, classes);
}

void sample_learned(KernelContext& c) {
  const Ref<RefCounted> kept = beside_stream(c, [](const KernelContext& first) {
    return Ref<RefCounted>(make_ref<LearnedClasses>(first.attr<std::int64_t>("range_max")));
  });
  auto& classes = static_cast<LearnedClasses&>(*kept);
  const Request request = check(c, c.attr<std::int64_t>("range_max"));
  std::lock_guard lock(classes.mutex);
  draw(c, request, classes);
  for (const std::int64_t value : c.input(0).values<std::int64_t>()) classes.add(value);
}

void sample_all(KernelContext& c) {
  const Request request = check(c, c.attr<std::int64_t>("num_sampled"));
  for (std::int64_t i = 0; i < request.count; ++i) c.output(0).data<std::int64_t>()[i] = i;
  for (const int k : {1, 2}) {
    auto* counts = c.output(k).data<float>();
    std::fill(counts, counts + c.output(k).num_elements(), 1.0f);
  }
}

void accidental_hits(KernelContext& c) {
  const Array &classes = c.input(0), &sampled = c.input(1);
  const auto columns = c.attr<std::int64_t>("num_true");
  if (classes.rank() != 2 || classes.shape()[1] != columns) {
    throw InvalidArgumentError(
        cat("true_candidates must be a batch_size * num_true matrix, but "
            "has shape ",
            classes.shape(), " for num_true ", columns));
  }
  if (sampled.rank() != 1) {
    throw InvalidArgumentError(
        cat("sampled_candidates must be a vector, but has shape ", sampled.shape()));
  }
  std::unordered_map<std::int64_t, std::int64_t> places;
  for (std::int64_t i = 0; i < sampled.num_elements(); ++i) {
    places[sampled.data<std::int64_t>()[i]] = i;
  }
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < classes.num_elements(); ++i) {
    const auto found = places.find(classes.data<std::int64_t>()[i]);
    if (found == places.end()) continue;
    rows.push_back(static_cast<std::int32_t>(i / columns));
    ids.push_back(found->second);
  }
  const std::vector<float> weights(ids.size(), -std::numeric_limits<float>::max());
  c.set_output(0, Array::vector(rows));
  c.set_output(1, Array::vector(ids));
  c.set_output(2, Array::vector(weights));
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "UniformCandidateSampler", .run = sample<UniformClasses>}),
    KernelRegistration({.op = "LogUniformCandidateSampler", .run = sample<LogUniformClasses>}),
    KernelRegistration({.op = "AllCandidateSampler", .run = sample_all}),
    KernelRegistration({.op = "FixedUnigramCandidateSampler", .run = sample_given}),
    KernelRegistration({.op = "LearnedUnigramCandidateSampler", .run = sample_learned}),
    KernelRegistration({.op = "ThreadUnsafeUnigramCandidateSampler", .run = sample_learned}),
    KernelRegistration({.op = "ComputeAccidentalHits", .run = accidental_hits}),
};

}  // namespace
}  // namespace tandem::cpu
