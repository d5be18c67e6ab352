// Rows dealt out by number and put together again: DynamicPartition, DynamicStitch.

#include <algorithm>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

bool starts_with(const Shape& whole, const Shape& prefix) {
  return prefix.rank() <= whole.rank() &&
         std::equal(prefix.data(), prefix.data() + prefix.rank(), whole.data());
}

Shape rows_of(std::int64_t rows, const Shape& like, int from) {
  Shape shape{rows};
  for (int i = from; i < like.rank(); ++i) shape.add_dim(like[i]);
  return shape;
}

void dynamic_partition(KernelContext& c) {
  const Array& data = c.input(0);
  const Array& partitions = c.input(1);
  const std::int64_t n = c.num_outputs();
  if (!starts_with(data.shape(), partitions.shape())) {
    throw InvalidArgumentError(cat("data.shape must start with partitions.shape, got data.shape = ",
                                   data.shape(), ", partitions.shape = ", partitions.shape()));
  }
  const std::int32_t* part = partitions.data<std::int32_t>();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n), 0);
  for (std::int64_t i = 0; i < partitions.num_elements(); ++i) {
    if (part[i] < 0 || part[i] >= n) {
      throw InvalidArgumentError(cat("partitions[", i, "] = ", part[i], " is not in [0, ", n, ")"));
    }
    ++counts[static_cast<std::size_t>(part[i])];
  }
  const std::int64_t inner = data.shape().product(partitions.rank(), data.rank());
  with_element(data.dtype(), [&]<class T>() {
    std::vector<T*> to;
    for (int i = 0; i < n; ++i) {
      const Shape shape =
          rows_of(counts[static_cast<std::size_t>(i)], data.shape(), partitions.rank());
      to.push_back(static_cast<T*>(c.allocate_output(i, shape).raw_data()));
    }
    const T* from = static_cast<const T*>(data.raw_data());
    for (std::int64_t i = 0; i < partitions.num_elements(); ++i) {
      T*& place = to[static_cast<std::size_t>(part[i])];
      copy_elements(place, from + i * inner, inner);
      place += inner;
    }
  });
}

void dynamic_stitch(KernelContext& c) {
  const int n = c.num_inputs() / 2;
  std::int64_t rows = 0;
  Shape rest;
  for (int k = 0; k < n; ++k) {
    const Array& indices = c.input(k);
    const Array& data = c.input(n + k);
    if (!starts_with(data.shape(), indices.shape())) {
      throw InvalidArgumentError(cat("data[", k, "].shape = ", data.shape(),
                                     " does not start with indices[", k,
                                     "].shape = ", indices.shape()));
    }
    const Shape after = rows_of(1, data.shape(), indices.rank());
    if (k == 0) rest = after;
    if (!(after == rest)) {
      throw InvalidArgumentError(cat("Need data[0].shape[", c.input(0).rank(), ":] = data[", k,
                                     "].shape[", indices.rank(), ":], got data[0].shape = ",
                                     c.input(n).shape(), ", data[", k, "].shape = ", data.shape()));
    }
    for (const std::int32_t index : indices.values<std::int32_t>()) {
      if (index < 0) throw InvalidArgumentError(cat("indices[", k, "] = ", index, " is negative"));
      rows = std::max<std::int64_t>(rows, std::int64_t{index} + 1);
    }
  }
  const Shape shape = rows_of(rows, rest, 1);
  const std::int64_t inner = rest.num_elements();
  Array& out = c.allocate_output(0, shape);
  with_element(out.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    clear_elements(to, out.num_elements());
    for (int k = 0; k < n; ++k) {
      const T* from = static_cast<const T*>(c.input(n + k).raw_data());
      for (const std::int32_t index : c.input(k).values<std::int32_t>()) {
        copy_elements(to + index * inner, from, inner);
        from += inner;
      }
    }
  });
}

const KernelRegistration kPartition{{.op = "DynamicPartition", .run = dynamic_partition}};
const KernelRegistration kStitch{{.op = "DynamicStitch", .run = dynamic_stitch}};
const KernelRegistration kParallelStitch{{.op = "ParallelDynamicStitch", .run = dynamic_stitch}};

}  // namespace
}  // namespace tandem::cpu
