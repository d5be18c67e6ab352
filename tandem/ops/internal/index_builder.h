#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::internal {

/// An index expression as the strided ops take it: begin, end and strides, int64 vectors, of which
/// some entries may be computed scalars, and the masks.
class IndexBuilder {
 public:
  /// Throws InvalidArgumentError for 32 entries or more, and for tensors that are no scalars.
  explicit IndexBuilder(std::span<const Index> entries);

  Tensor begin() const { return with_computed(begin_, 0); }
  Tensor end() const { return with_computed(end_, 1); }
  Tensor strides() const;
  AttrMap masks() const;
  /// True if no entry is computed; then these are all there is.
  bool written() const { return computed_.empty(); }
  Tensor of(Tensor t) const;

 private:
  void add(const Index& entry, int i);
  void add(std::int64_t begin, std::int64_t end, std::int64_t stride);
  Tensor with_computed(const std::vector<std::int64_t>& written, std::int64_t plus) const;

  std::vector<std::int64_t> begin_, end_, strides_;
  std::vector<std::pair<int, Tensor>> computed_;
  StridedSliceOptions options_;
};

}  // namespace tandem::internal
