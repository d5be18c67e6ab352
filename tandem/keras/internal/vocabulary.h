#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "tandem/core/string_index.h"
#include "tandem/data/dataset.h"
#include "tandem/keras/layer.h"
#include "tandem/ops/lookup.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// How often each of many strings was seen, by its number in an index.
class StringCounts {
 public:
  void prefetch(const StringIndex::Key& key) const { index_.prefetch(key); }
  std::int64_t& operator[](const StringIndex::Key& key) {
    const auto number = static_cast<std::size_t>(index_.add(key));
    if (number == counts_.size()) counts_.push_back(0);
    return counts_[number];
  }
  /// Calls visit(text, count) for each of them.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      visit(index_.at(static_cast<std::int64_t>(i)), counts_[i]);
    }
  }

 private:
  StringIndex index_;
  std::vector<std::int64_t> counts_;
};

/// Counts of tokens that are gathered from data.
template <class Token>
class TokenCounts {
 public:
  void add(const Tensor& tokens) {
    const auto all = tokens.data<Token>();
    if constexpr (kStrings) {
      // Tokens wait for what is fetched of the index while others are counted.
      constexpr std::size_t kWaiting = 16;
      StringIndex::Key waiting[kWaiting];
      for (std::size_t i = 0; i < all.size() + kWaiting; ++i) {
        StringIndex::Key& key = waiting[i % kWaiting];
        if (i >= kWaiting) ++counts_[key];
        if (i >= all.size()) continue;
        key = StringIndex::Key(all[i]);
        counts_.prefetch(key);
      }
    } else {
      for (const Token& token : all) ++counts_[token];
    }
  }
  void remove(const Token& token) {
    if constexpr (kStrings) {
      counts_[StringIndex::Key(token)] = 0;
    } else {
      counts_[token] = 0;
    }
  }
  /// The most frequent ones first, `limit` at most; of equally frequent ones the greater first.
  std::vector<Token> most_frequent(std::optional<std::int64_t> limit) const;

 private:
  static constexpr bool kStrings = std::is_same_v<Token, std::string>;
  std::conditional_t<kStrings, StringCounts, std::unordered_map<Token, std::int64_t>> counts_;
};

/// A row of `depth` floats of the last axis of integers: where they are ("multi_hot"), how often
/// ("count"), or one row for each ("one_hot"); the integers themselves for "int".
Tensor encode_categories(const Tensor& x, std::int64_t depth, const std::string& output_mode);
/// Throws InvalidArgumentError for another mode.
void check_output_mode(const std::string& layer, const std::string& output_mode);

/// The table of a vocabulary whose first token has the number `first`; unknown ones get
/// `otherwise`.
template <class Token>
lookup::StaticHashTable table_of(const std::vector<Token>& tokens, std::int64_t first,
                                 std::int64_t otherwise) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    numbers.push_back(first + static_cast<std::int64_t>(i));
  return lookup::StaticHashTable(lookup::KeyValueTensorInitializer{Tensor(tokens), Tensor(numbers)},
                                 Tensor(otherwise));
}

/// A layer whose learnt vocabulary is a file of its own in a `.keras` archive.
class StoredVocabulary {
 public:
  StoredVocabulary() = default;
  StoredVocabulary(const StoredVocabulary&) = delete;
  StoredVocabulary& operator=(const StoredVocabulary&) = delete;
  virtual ~StoredVocabulary() = default;
  /// The objects below the layer whose folders Keras reads too.
  virtual std::vector<std::string> parts() const { return {}; }
  /// One token a line, reserved ones first; nothing without a learnt vocabulary.
  virtual std::optional<std::string> vocabulary_text() const = 0;
  /// Throws DataLossError for a line that is no token. `weights` are those of idf_weights().
  virtual void set_vocabulary_text(std::string_view text, const Tensor& weights) = 0;
  /// A weight for each token, where the output mode is "tf_idf"; else undefined.
  virtual Tensor idf_weights() const { return {}; }
};

/// The lines of a vocabulary's file; empty ones at the end are none.
std::vector<std::string> vocabulary_lines(std::string_view text);

/// Zeros of int64 in place of numbers that need a vocabulary, in a graph that is traced for its
/// shapes before there is one; running it is an error. Throws FailedPreconditionError outside of a
/// trace. `message` is both errors'.
Tensor numbers_without_vocabulary(const Tensor& tokens, const std::string& message);

/// What a layer with begin(), add(batch) and finish() learns.
template <class Impl>
void adapt_to(const Layer& layer, const Tensor& data) {
  Impl& impl = static_cast<Impl&>(*layer.impl());
  impl.begin();
  impl.add(data);
  impl.finish();
}
template <class Impl>
void adapt_to(const Layer& layer, const data::Dataset& batches) {
  Impl& impl = static_cast<Impl&>(*layer.impl());
  impl.begin();
  data::Iterator iterator = batches.iterator();
  for (data::Element element; iterator.next(element);) impl.add(element[0]);
  impl.finish();
}

}  // namespace tandem::keras::internal
