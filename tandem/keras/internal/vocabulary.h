#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "tandem/core/string_index.h"
#include "tandem/ops/lookup.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Counts of tokens that are gathered from data.
template <class Token>
class TokenCounts {
 public:
  void add(const Tensor& tokens) {
    for (const Token& token : tokens.data<Token>()) ++count_of(token);
  }
  void remove(const Token& token) { count_of(token) = 0; }
  /// The most frequent ones first, `limit` at most; of equally frequent ones the greater first.
  std::vector<Token> most_frequent(std::optional<std::int64_t> limit) const;

 private:
  std::int64_t& count_of(const Token& token) {
    if constexpr (std::is_same_v<Token, std::string>) {
      const auto number = static_cast<std::size_t>(index_.add(token));
      if (number == counts_.size()) counts_.push_back(0);
      return counts_[number];
    } else {
      return counts_[token];
    }
  }

  // Strings are counted by their numbers in the index.
  static constexpr bool kStrings = std::is_same_v<Token, std::string>;
  struct None {};
  std::conditional_t<kStrings, StringIndex, None> index_;
  std::conditional_t<kStrings, std::vector<std::int64_t>, std::unordered_map<Token, std::int64_t>>
      counts_;
};

/// A row of `depth` floats of the last axis of integers: where they are ("multi_hot"), how often
/// ("count"), or one row for each ("one_hot"); the integers themselves for "int".
Tensor encode_categories(const Tensor& x, std::int64_t depth, const std::string& output_mode);
/// Throws InvalidArgumentError for another mode.
void check_output_mode(const std::string& layer, const std::string& output_mode);

}  // namespace tandem::keras::internal
