#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tandem/core/shape.h"

namespace tandem {

/// The values of the symbols that the sizes of a call are made of: a batch size, a length.
using SymbolValues = std::span<const std::int64_t>;

/// A dimension as a polynomial in a few symbols, each at most to the first power: 2 b, t + 1, b t.
/// A plain value.
class SymbolicDim {
 public:
  static constexpr int kMaxSymbols = 3;

  SymbolicDim() = default;
  explicit SymbolicDim(std::int64_t constant);

  /// The polynomial that has these values at the corners of a box. Corner m, of 2^symbols, has the
  /// upper bound of symbol i if bit i of m is set, else the lower one. Nothing if a coefficient is
  /// no integer.
  static std::optional<SymbolicDim> through(std::vector<std::int64_t> values, SymbolValues lower,
                                            SymbolValues upper);

  std::int64_t at(SymbolValues symbols) const {
    std::int64_t sum = constant_;
    for (const Term& term : terms_) {
      std::int64_t product = term.coefficient;
      for (std::size_t i = 0; i < symbols.size(); ++i) {
        if ((term.symbols >> i) & 1u) product *= symbols[i];
      }
      sum += product;
    }
    return sum;
  }
  bool is_constant() const { return terms_.empty(); }
  std::int64_t constant() const { return constant_; }
  /// True if it cannot become smaller while a symbol grows.
  bool never_shrinks() const;

  auto operator<=>(const SymbolicDim&) const = default;

 private:
  struct Term {
    unsigned symbols = 0;  ///< bit i: times symbol i
    std::int64_t coefficient = 0;
    auto operator<=>(const Term&) const = default;
  };
  std::int64_t constant_ = 0;
  std::vector<Term> terms_;  ///< by `symbols`
};

/// A shape some of whose sizes follow from symbols. A plain value.
class SymbolicShape {
 public:
  SymbolicShape() = default;
  explicit SymbolicShape(std::vector<SymbolicDim> dims);
  explicit SymbolicShape(const Shape& shape);

  int rank() const { return static_cast<int>(dims_.size()); }
  Shape at(SymbolValues symbols) const;
  /// Nothing if the product needs more than `limit`.
  std::optional<std::int64_t> elements_at(SymbolValues symbols, std::int64_t limit) const;
  bool is_constant() const { return factors_.empty(); }
  bool never_shrinks() const;
  /// True if both have the same number of elements, whatever the symbols are.
  bool same_elements(const SymbolicShape& other) const {
    return constant_ == other.constant_ && factors_ == other.factors_;
  }
  bool operator==(const SymbolicShape& other) const { return dims_ == other.dims_; }

 private:
  std::vector<SymbolicDim> dims_;
  std::int64_t constant_ = 1;         ///< product of the dimensions that are constant
  std::vector<SymbolicDim> factors_;  ///< the others, sorted
};

}  // namespace tandem
