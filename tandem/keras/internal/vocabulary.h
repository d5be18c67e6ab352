#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tandem/ops/lookup.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Counts of tokens that are gathered from data.
template <class Token>
class TokenCounts {
 public:
  void add(const Tensor& tokens) {
    for (const Token& token : tokens.data<Token>()) ++counts_[token];
  }
  void remove(const Token& token) { counts_.erase(token); }
  /// The most frequent ones first, `limit` at most; of equally frequent ones the greater first.
  std::vector<Token> most_frequent(std::optional<std::int64_t> limit) const;

 private:
  std::map<Token, std::int64_t> counts_;
};

/// A row of `depth` floats of the last axis of integers: where they are ("multi_hot"), how often
/// ("count"), or one row for each ("one_hot"); the integers themselves for "int".
Tensor encode_categories(const Tensor& x, std::int64_t depth, const std::string& output_mode);
/// Throws InvalidArgumentError for another mode.
void check_output_mode(const std::string& layer, const std::string& output_mode);

}  // namespace tandem::keras::internal
