// The edges of fractional pooling's windows: the numbers that TensorFlow draws.

#include "tandem/kernels/cpu/pool/fractional_windows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/random.h"

namespace tandem::cpu {
namespace {

// Edge i is ceil(ratio · (i + u)), for one number u that leaves no window too small or too large.
Edges pseudo_random_edges(std::int64_t size, std::int64_t windows, PhiloxNumbers next) {
  const double ratio = static_cast<double>(size) / static_cast<double>(windows);
  const auto least = static_cast<double>(size / windows);
  const double first = (least + 2) / ratio - 1;
  const double last =
      (static_cast<double>(size + 1) - least) / ratio - static_cast<double>(windows - 1);
  const std::uint32_t x0 = next();
  const double u = unit_double(x0, next()) * std::min(first, last);
  Edges edges{0};
  for (std::int64_t i = 1; i < windows; ++i) {
    edges.push_back(static_cast<std::int64_t>(std::ceil(ratio * (static_cast<double>(i) + u))) - 1);
  }
  edges.push_back(size);
  return edges;
}

// Windows of two sizes in a random order.
Edges random_edges(std::int64_t size, std::int64_t windows, PhiloxNumbers next) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(windows), size / windows);
  for (std::int64_t i = 0; i < size % windows; ++i) ++sizes[static_cast<std::size_t>(i)];
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    std::swap(sizes[i], sizes[i + next() % static_cast<std::uint32_t>(sizes.size() - i)]);
  }
  Edges edges{0};
  for (const std::int64_t own : sizes) edges.push_back(edges.back() + own);
  return edges;
}

std::int64_t windows_of(std::int64_t size, float ratio, int axis) {
  if (!(ratio >= 1)) {
    throw InvalidArgumentError(cat("pooling_ratio cannot be smaller than 1, got: ", ratio));
  }
  if (!(static_cast<float>(size) >= ratio)) {
    throw InvalidArgumentError(
        cat("Pooling ratio is higher than input dimension size for "
            "dimension ",
            axis, ". Input dim size: ", size, " pooling ratio: ", ratio));
  }
  // Converted to float, a large size may be rounded up.
  return std::min(size, static_cast<std::int64_t>(std::floor(static_cast<float>(size) / ratio)));
}

}  // namespace

Windows draw_windows(KernelContext& c) {
  const auto& ratio = c.attr<std::vector<float>>("pooling_ratio");
  const Shape& in = c.input(0).shape();
  const auto seed = static_cast<std::uint64_t>(c.attr<std::int64_t>("seed"));
  const auto seed2 = static_cast<std::uint64_t>(c.attr<std::int64_t>("seed2"));
  const bool deterministic = c.attr<bool>("deterministic"), seeded = seed != 0 || seed2 != 0;
  if (in.rank() != 4) {
    throw InvalidArgumentError(cat("tensor_in must be 4-dimensional, got shape ", in));
  }
  if (ratio.size() != 4) {
    throw InvalidArgumentError("pooling_ratio field must specify 4 dimensions");
  }
  if (ratio[0] != 1 || ratio[3] != 1) {
    // TensorFlow's error and text: the op has no meaning for these axes there either.
    throw UnimplementedError(
        "Fractional pooling is not yet supported on the batch nor channel dimension.");
  }
  if (seeded && !deterministic) {
    throw InvalidArgumentError("Both seed and seed2 should be 0 if deterministic is false.");
  }
  std::int64_t windows[4];
  for (int i = 0; i < 4; ++i) windows[i] = windows_of(in[i], ratio[static_cast<std::size_t>(i)], i);
  const std::int64_t rows = windows[1], columns = windows[2];
  const bool pseudo = c.attr<bool>("pseudo_random");
  const auto blocks = [&](std::int64_t count) {
    return static_cast<std::uint64_t>(pseudo ? 1 : (count + 3) / 4);
  };
  // A deterministic node without seeds has one draw of chance for all its executions.
  Philox stream = seeded ? Philox(seed, seed2)
                         : reserve_blocks(c, deterministic ? 0 : blocks(rows) + blocks(columns));
  const auto edges = [&](std::int64_t size, std::int64_t count) {
    const PhiloxNumbers next(stream);
    stream.skip(blocks(count));
    return pseudo ? pseudo_random_edges(size, count, next) : random_edges(size, count, next);
  };
  Edges row_edges = edges(in[1], rows);
  return {std::move(row_edges), edges(in[2], columns), in[1], in[2], c.attr<bool>("overlapping")};
}

}  // namespace tandem::cpu
