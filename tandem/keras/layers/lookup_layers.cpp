#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/vocabulary.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers/preprocessing.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/lookup.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/string_functions.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

template <class Token>
Token unknown_token() {
  if constexpr (std::is_same_v<Token, std::string>) {
    return "[UNK]";
  } else {
    return -1;
  }
}

// The table of a vocabulary whose first token has the number `first`; unknown ones get `otherwise`.
template <class Token>
lookup::StaticHashTable table_of(const std::vector<Token>& tokens, std::int64_t first,
                                 std::int64_t otherwise) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    numbers.push_back(first + static_cast<std::int64_t>(i));
  return lookup::StaticHashTable(lookup::KeyValueTensorInitializer{Tensor(tokens), Tensor(numbers)},
                                 Tensor(otherwise));
}

template <class Token>
class LookupImpl final : public LayerImpl {
 public:
  LookupImpl(const char* class_name, const LookupOptions<Token>& o)
      : LayerImpl(class_name, {.name = o.name}), options_(o) {
    internal::check_output_mode(class_name, o.output_mode);
    if (o.invert && o.output_mode != "int") {
      throw InvalidArgumentError(
          cat(class_name, ": `output_mode` must be \"int\" when `invert` is true."));
    }
    without_weights();
    keep_dtypes();
    if (!o.vocabulary.empty()) set(o.vocabulary);
  }
  void begin() { counts_ = {}; }
  void add(const Tensor& data) {
    counts_.add(std::is_same_v<Token, std::string> ? data : cast(data, int64));
  }
  void finish() {
    counts_.remove(unknown_token<Token>());
    std::optional<std::int64_t> limit = options_.max_tokens;
    if (limit) limit = *limit - options_.num_oov_indices;
    set(counts_.most_frequent(limit));
  }
  std::vector<Token> all() const {
    std::vector<Token> tokens(static_cast<std::size_t>(options_.num_oov_indices),
                              unknown_token<Token>());
    tokens.insert(tokens.end(), vocabulary_.begin(), vocabulary_.end());
    return tokens;
  }

  Tensor call(const Tensor& given, bool) override {
    if (!table_) {
      throw FailedPreconditionError(
          cat(prefix(), "has no vocabulary yet. Call adapt(data) before training, or give one."));
    }
    if (options_.invert) {
      const std::vector<Token> tokens = all();
      const Tensor i = cast(given, int64);
      const Tensor known = logical_and(i >= 0, i < static_cast<std::int64_t>(tokens.size()));
      return gather(Tensor(tokens), where(known, i, zeros_like(i)));
    }
    const Tensor x = std::is_same_v<Token, std::string> ? given : cast(given, int64);
    Tensor number = table_->lookup(x);
    if (options_.num_oov_indices > 1) {
      const Tensor text = x.dtype() == string ? x : strings::as_string(x);
      const Tensor bucket = x.dtype() == string
                                ? strings::to_hash_bucket_fast(text, options_.num_oov_indices)
                                : floormod(x, options_.num_oov_indices);
      number = where(number < 0, bucket, number);
    }
    // Keras' lookups count in integers.
    return cast(internal::encode_categories(number, static_cast<std::int64_t>(all().size()),
                                            options_.output_mode),
                int64);
  }

 private:
  void set(std::vector<Token> vocabulary) {
    vocabulary_ = std::move(vocabulary);
    table_ =
        table_of(vocabulary_, options_.num_oov_indices, options_.num_oov_indices == 1 ? 0 : -1);
  }

  LookupOptions<Token> options_;
  internal::TokenCounts<Token> counts_;
  std::vector<Token> vocabulary_;
  std::optional<lookup::StaticHashTable> table_;
};

class TextVectorizationImpl final : public LayerImpl {
 public:
  explicit TextVectorizationImpl(const TextVectorizationOptions& o)
      : LayerImpl("TextVectorization", {.name = o.name}), options_(o) {
    for (const auto& [what, given, known] :
         {std::tuple("standardize", o.standardize,
                     std::vector<std::string>{"lower_and_strip_punctuation", "lower",
                                              "strip_punctuation", ""}),
          std::tuple("split", o.split, std::vector<std::string>{"whitespace", "character", ""}),
          std::tuple("output_mode", o.output_mode,
                     std::vector<std::string>{"int", "multi_hot", "count", "tf_idf"})}) {
      if (std::find(known.begin(), known.end(), given) == known.end())
        throw InvalidArgumentError(cat("TextVectorization: there is no ", what, " '", given, "'."));
    }
    without_weights();
    keep_dtypes();
    if (!o.vocabulary.empty()) set(o.vocabulary);
  }

  void begin() { counts_ = {}, documents_ = {}, num_documents_ = 0; }
  void add(const Tensor& data) {
    const RaggedTensor tokens = tokens_of(data);
    counts_.add(tokens.flat_values());
    num_documents_ += tokens.row_splits().dim(0) - 1;
    if (options_.output_mode != "tf_idf") return;
    const auto splits = cast(tokens.row_splits(), int64).to_vector<std::int64_t>();
    const auto words = tokens.flat_values().data<std::string>();
    for (std::size_t row = 0; row + 1 < splits.size(); ++row) {
      std::set<std::string> distinct(words.begin() + splits[row], words.begin() + splits[row + 1]);
      for (const std::string& word : distinct) ++documents_[word];
    }
  }
  void finish() {
    counts_.remove("");
    counts_.remove("[UNK]");
    std::optional<std::int64_t> limit = options_.max_tokens;
    if (limit) limit = *limit - first();
    set(counts_.most_frequent(limit));
    if (options_.output_mode != "tf_idf") return;
    std::vector<float> weights;
    double sum = 0;
    for (const std::string& word : vocabulary_) {
      const double weight = std::log(1 + static_cast<double>(num_documents_) /
                                             (1.0 + static_cast<double>(documents_[word])));
      weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    weights.insert(weights.begin(),
                   static_cast<float>(sum / static_cast<double>(vocabulary_.size())));
    idf_ = Tensor(weights);
  }
  std::vector<std::string> all() const {
    std::vector<std::string> tokens;
    if (first() == 2) tokens.emplace_back("");
    tokens.emplace_back("[UNK]");
    tokens.insert(tokens.end(), vocabulary_.begin(), vocabulary_.end());
    return tokens;
  }

  Tensor call(const Tensor& x, bool) override {
    if (!table_) {
      throw FailedPreconditionError(
          cat(prefix(), "has no vocabulary yet. Call adapt(texts) before training, or give one."));
    }
    const RaggedTensor tokens = tokens_of(x);
    const RaggedTensor numbers = tokens.with_flat_values(table_->lookup(tokens.flat_values()));
    if (options_.output_mode == "int") {
      return numbers.to_tensor(0, {-1, options_.output_sequence_length.value_or(-1)});
    }
    // How often each token is in each row.
    const std::int64_t depth = static_cast<std::int64_t>(all().size());
    const Tensor places = stack({cast(numbers.value_rowids(), int64), numbers.flat_values()}, 1);
    const Tensor rows = cast(numbers.nrows(), int64);
    const Tensor counts = scatter_nd(places, ones_like(numbers.flat_values(), float32),
                                     IntList(stack({rows, Tensor(depth)})));
    if (options_.output_mode == "count") return cast(counts, int64);
    if (options_.output_mode == "multi_hot") return cast(counts > 0.0, int64);
    if (!idf_.defined())
      throw FailedPreconditionError(cat(prefix(), "tf_idf needs adapt, for its weights."));
    return counts * idf_;
  }

 private:
  std::int64_t first() const { return options_.output_mode == "int" ? 2 : 1; }
  void set(std::vector<std::string> vocabulary) {
    vocabulary_ = std::move(vocabulary);
    table_ = table_of(vocabulary_, first(), first() - 1);
  }
  RaggedTensor tokens_of(const Tensor& given) const {
    Tensor x = given;
    if (x.rank() == 0) x = reshape(x, {1});
    if (x.rank() > 1) x = squeeze(x, {-1});
    const std::string& standardize = options_.standardize;
    if (standardize == "lower" || standardize == "lower_and_strip_punctuation")
      x = strings::lower(x);
    if (standardize == "strip_punctuation" || standardize == "lower_and_strip_punctuation") {
      x = strings::regex_replace(x, Tensor("[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']"),
                                 Tensor(""));
    }
    RaggedTensor tokens;
    if (options_.split == "whitespace") {
      tokens = strings::split_ragged(x);
    } else if (options_.split == "character") {
      tokens = strings::unicode_split(x, "UTF-8");
    } else {
      tokens = RaggedTensor::from_row_lengths(x, ones_like(x, int64), false);
    }
    return options_.ngrams.empty() ? tokens : strings::ngrams(tokens, options_.ngrams);
  }

  TextVectorizationOptions options_;
  internal::TokenCounts<std::string> counts_;
  std::map<std::string, std::int64_t> documents_;
  std::int64_t num_documents_ = 0;
  std::vector<std::string> vocabulary_;
  std::optional<lookup::StaticHashTable> table_;
  Tensor idf_;
};

template <class Impl>
Impl& impl_of(const Layer& layer) {
  return static_cast<Impl&>(*layer.impl());
}
template <class Impl>
void adapt_to(const Layer& layer, const Tensor& data) {
  Impl& impl = impl_of<Impl>(layer);
  impl.begin();
  impl.add(data);
  impl.finish();
}
template <class Impl>
void adapt_to(const Layer& layer, const data::Dataset& batches) {
  Impl& impl = impl_of<Impl>(layer);
  impl.begin();
  data::Iterator iterator = batches.iterator();
  data::Element element;
  while (iterator.next(element)) impl.add(element[0]);
  impl.finish();
}

}  // namespace

using StringImpl = LookupImpl<std::string>;
using IntegerImpl = LookupImpl<std::int64_t>;

StringLookup::StringLookup(const StringLookupOptions& options)
    : Layer(make_layer<StringImpl>("StringLookup", options)) {}
void StringLookup::adapt(const Tensor& data) const { adapt_to<StringImpl>(*this, data); }
void StringLookup::adapt(const data::Dataset& batches) const {
  adapt_to<StringImpl>(*this, batches);
}
std::vector<std::string> StringLookup::get_vocabulary() const {
  return impl_of<StringImpl>(*this).all();
}
std::int64_t StringLookup::vocabulary_size() const {
  return static_cast<std::int64_t>(get_vocabulary().size());
}
IntegerLookup::IntegerLookup(const IntegerLookupOptions& options)
    : Layer(make_layer<IntegerImpl>("IntegerLookup", options)) {}
void IntegerLookup::adapt(const Tensor& data) const { adapt_to<IntegerImpl>(*this, data); }
void IntegerLookup::adapt(const data::Dataset& batches) const {
  adapt_to<IntegerImpl>(*this, batches);
}
std::vector<std::int64_t> IntegerLookup::get_vocabulary() const {
  return impl_of<IntegerImpl>(*this).all();
}
std::int64_t IntegerLookup::vocabulary_size() const {
  return static_cast<std::int64_t>(get_vocabulary().size());
}
TextVectorization::TextVectorization(const TextVectorizationOptions& options)
    : Layer(make_layer<TextVectorizationImpl>(options)) {}
void TextVectorization::adapt(const Tensor& data) const {
  adapt_to<TextVectorizationImpl>(*this, data);
}
void TextVectorization::adapt(const data::Dataset& batches) const {
  adapt_to<TextVectorizationImpl>(*this, batches);
}
std::vector<std::string> TextVectorization::get_vocabulary() const {
  return impl_of<TextVectorizationImpl>(*this).all();
}
std::int64_t TextVectorization::vocabulary_size() const {
  return static_cast<std::int64_t>(get_vocabulary().size());
}

}  // namespace tandem::keras
