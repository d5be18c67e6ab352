#include "tandem/runtime/execute/symbolic_shape.h"

#include <algorithm>
#include <utility>

namespace tandem {

SymbolicDim::SymbolicDim(std::int64_t constant) : constant_(constant) {}

std::optional<SymbolicDim> SymbolicDim::through(std::vector<std::int64_t> values,
                                                SymbolValues lower, SymbolValues upper) {
  // One symbol after the other: two values become the value at 0 and the slope.
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const std::int64_t width = upper[i] - lower[i];
    for (std::size_t corner = 0; corner < values.size(); ++corner) {
      if ((corner >> i) & 1) continue;
      std::int64_t& low = values[corner];
      std::int64_t& high = values[corner | (std::size_t{1} << i)];
      if ((high - low) % width != 0) return std::nullopt;
      high = (high - low) / width;
      std::int64_t begin = 0;
      if (__builtin_mul_overflow(high, lower[i], &begin)) return std::nullopt;
      low -= begin;
    }
  }
  SymbolicDim dim(values[0]);
  for (std::size_t symbols = 1; symbols < values.size(); ++symbols) {
    if (values[symbols] != 0)
      dim.terms_.push_back({static_cast<unsigned>(symbols), values[symbols]});
  }
  return dim;
}

bool SymbolicDim::never_shrinks() const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [](const Term& term) { return term.coefficient > 0; });
}

SymbolicShape::SymbolicShape(std::vector<SymbolicDim> dims) : dims_(std::move(dims)) {
  for (const SymbolicDim& dim : dims_) {
    if (dim.is_constant()) {
      constant_ *= dim.constant();
    } else {
      factors_.push_back(dim);
    }
  }
  std::sort(factors_.begin(), factors_.end());
}

SymbolicShape::SymbolicShape(const Shape& shape) : constant_(shape.num_elements()) {
  for (const std::int64_t size : shape.dims()) dims_.emplace_back(size);
}

Shape SymbolicShape::at(SymbolValues symbols) const {
  std::int64_t sizes[Shape::kMaxRank];
  for (std::size_t i = 0; i < dims_.size(); ++i) sizes[i] = dims_[i].at(symbols);
  return Shape(std::span<const std::int64_t>(sizes, dims_.size()));
}

std::optional<std::int64_t> SymbolicShape::elements_at(SymbolValues symbols,
                                                       std::int64_t limit) const {
  std::int64_t count = constant_;
  for (const SymbolicDim& factor : factors_) {
    const std::int64_t size = factor.at(symbols);
    if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > limit)
      return std::nullopt;
  }
  return count;
}

bool SymbolicShape::never_shrinks() const {
  return std::all_of(factors_.begin(), factors_.end(),
                     [](const SymbolicDim& dim) { return dim.never_shrinks(); });
}

}  // namespace tandem
