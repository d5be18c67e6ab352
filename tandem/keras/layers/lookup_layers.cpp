#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/idf_weights.h"
#include "tandem/keras/internal/vocabulary.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers/preprocessing.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/lookup.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/string_functions.h"

namespace tandem::keras {
namespace {

template <class Token>
constexpr bool kIsText = std::is_same_v<Token, std::string>;

template <class Token>
Token unknown_token() {
  if constexpr (kIsText<Token>) {
    return "[UNK]";
  } else {
    return -1;
  }
}

template <class Token>
LookupOptions<Token> with_oov_token(LookupOptions<Token> options) {
  if (!options.oov_token) options.oov_token = unknown_token<Token>();
  return options;
}

constexpr auto kArguments = [](auto& a, auto& o) {
  using Token = typename std::remove_cvref_t<decltype(o.vocabulary)>::value_type;
  a("invert", o.invert);
  a("max_tokens", o.max_tokens);
  a("num_oov_indices", o.num_oov_indices);
  a("oov_token", o.oov_token);
  a("mask_token", o.mask_token);
  a("output_mode", o.output_mode);
  a("pad_to_max_tokens", o.pad_to_max_tokens);
  a("idf_weights", o.idf_weights);
  a("vocabulary", o.vocabulary);
  a.fixed("oov_method", "floormod");
  if constexpr (kIsText<Token>) {
    a.fixed("encoding", "utf-8");
  } else {
    a.fixed("vocabulary_dtype", "int64");
  }
};

template <class Token>
class LookupImpl final : public LayerImpl, public internal::StoredVocabulary {
 public:
  LookupImpl(const char* class_name, const LookupOptions<Token>& o)
      : LayerImpl(class_name, {.name = o.name}), options_(with_oov_token(o)) {
    if (o.output_mode != "tf_idf") internal::check_output_mode(class_name, o.output_mode);
    internal::check_idf_arguments(class_name, o.output_mode, o.pad_to_max_tokens, o.max_tokens,
                                  o.idf_weights);
    if (o.invert && o.output_mode != "int") {
      throw InvalidArgumentError(
          cat(class_name, ": `output_mode` must be \"int\" when `invert` is true."));
    }
    if (o.num_oov_indices < 0)
      throw InvalidArgumentError(cat(class_name, ": `num_oov_indices` must not be negative."));
    without_weights();
    keep_dtypes();
    set_arguments(internal::written_arguments(kArguments, options_));
    if (o.vocabulary.empty()) return;
    set(o.vocabulary);
    if (weighs()) idf_ = internal::idf_row(cat(class_name, ": "), o.idf_weights, row_size());
  }
  // How many tokens there will be, of a layer whose vocabulary is read later.
  void expect_size(std::optional<std::int64_t> size) { expected_size_ = size; }

  void begin() { counts_ = {}, documents_ = {}; }
  // The last axis of the data is a document; without a batch, all of it.
  void add(const Tensor& data) {
    const Tensor tokens = kIsText<Token> ? data : cast(data, int64);
    counts_.add(tokens);
    if (!weighs() || tokens.num_elements() == 0) return;
    const auto length = static_cast<std::size_t>(tokens.rank() == 0 ? 1 : tokens.dim(-1));
    std::span<const Token> rest = tokens.data<Token>();
    for (; !rest.empty(); rest = rest.subspan(length)) documents_.add(rest.first(length));
  }
  void finish() {
    counts_.remove(*options_.oov_token);
    if (options_.mask_token) counts_.remove(*options_.mask_token);
    std::optional<std::int64_t> limit = options_.max_tokens;
    if (limit) limit = *limit - token_start();
    set(counts_.most_frequent(limit));
    if (weighs()) idf_ = internal::idf_row(prefix(), documents_.weights(vocabulary_), row_size());
  }
  std::vector<Token> all() const {
    std::vector<Token> tokens = reserved();
    tokens.insert(tokens.end(), vocabulary_.begin(), vocabulary_.end());
    return tokens;
  }

  Tensor call(const Tensor& given, bool) override {
    if (options_.invert) return tokens_of(cast(given, int64));
    const Tensor x = kIsText<Token> ? given : cast(given, int64);
    Tensor number =
        table_ ? table_->lookup(x) : internal::numbers_without_vocabulary(x, no_vocabulary());
    if (table_ && options_.num_oov_indices == 0) require_known(x, number);
    if (options_.num_oov_indices > 1) {
      const Tensor bucket = x.dtype() == string
                                ? strings::to_hash_bucket_fast(x, options_.num_oov_indices)
                                : floormod(x, options_.num_oov_indices);
      number = where(number < 0, bucket + oov_start(), number);
    }
    if (options_.mask_token) {
      // What is not in the rows of the other modes has a number outside of them.
      const std::int64_t masked = options_.output_mode == "int" ? 0 : -1;
      number =
          where(equal(x, Tensor(Token(*options_.mask_token))), masked * ones_like(number), number);
    }
    if (options_.output_mode == "int") return number;
    if (!table_ && !expected_size_) throw FailedPreconditionError(no_vocabulary());
    const std::int64_t depth =
        table_ || options_.pad_to_max_tokens ? row_size().depth() : *expected_size_;
    if (weighs()) {
      const Tensor counts = internal::encode_categories(number, depth, "count");
      if (!table_) return counts;
      if (!idf_.defined())
        throw FailedPreconditionError(cat(prefix(), "tf_idf needs adapt, for its weights."));
      return counts * idf_;
    }
    // Keras' lookups count in integers.
    return cast(internal::encode_categories(number, depth, options_.output_mode), int64);
  }
  void describe(Config& config) const override {
    if (table_) config.set("vocabulary_size", static_cast<std::int64_t>(all().size()));
  }

  std::optional<std::string> vocabulary_text() const override {
    if (!table_ || !options_.vocabulary.empty()) return std::nullopt;
    std::string text;
    for (const Token& token : all()) text += cat(token, "\n");
    text.pop_back();
    return text;
  }
  // Without what pads the row: Keras compares them with the file's vocabulary.
  Tensor idf_weights() const override {
    if (!idf_.defined() || !options_.vocabulary.empty()) return idf_;
    return slice(idf_, {0}, {row_size().reserved + row_size().tokens});
  }
  void set_vocabulary_text(std::string_view text, const Tensor& weights) override {
    std::vector<Token> tokens;
    for (std::string& line : internal::vocabulary_lines(text)) {
      if constexpr (kIsText<Token>) {
        tokens.push_back(std::move(line));
      } else {
        const char* end = line.data() + line.size();
        const auto read = std::from_chars(line.data(), end, tokens.emplace_back());
        if (read.ec != std::errc() || read.ptr != end)
          throw DataLossError(cat(prefix(), "the vocabulary has '", line, "' for a number."));
      }
    }
    set(std::move(tokens));
    if (!weighs()) return;
    if (!weights.defined())
      throw DataLossError(cat(prefix(), "the file has no idf_weights for its vocabulary."));
    idf_ = internal::idf_row(
        prefix(), cast(reshape(weights, {-1}), float64).template to_vector<double>(), row_size());
  }

 private:
  bool weighs() const { return options_.output_mode == "tf_idf"; }
  internal::RowSize row_size() const {
    internal::RowSize size{.reserved = token_start(),
                           .tokens = static_cast<std::int64_t>(vocabulary_.size())};
    if (options_.pad_to_max_tokens) size.padded = *options_.max_tokens;
    return size;
  }
  std::int64_t oov_start() const {
    return options_.mask_token && options_.output_mode == "int" ? 1 : 0;
  }
  std::int64_t token_start() const { return oov_start() + options_.num_oov_indices; }
  std::vector<Token> reserved() const {
    std::vector<Token> tokens;
    if (oov_start() > 0) tokens.push_back(*options_.mask_token);
    tokens.resize(static_cast<std::size_t>(token_start()), *options_.oov_token);
    return tokens;
  }
  // Without a place for unknown tokens each must be in the vocabulary, or the mask.
  void require_known(const Tensor& x, const Tensor& number) const {
    Tensor known = number >= 0;
    if (options_.mask_token)
      known = logical_or(known, equal(x, Tensor(Token(*options_.mask_token))));
    debugging::assert_true(
        reduce_all(known),
        {Tensor("When `num_oov_indices=0` all inputs should be in vocabulary. Consider setting "
                "`num_oov_indices=1`, or adapt to data with all tokens. Found OOV values:"),
         boolean_mask(x, logical_not(known))});
  }
  std::string no_vocabulary() const {
    return cat(prefix(), "has no vocabulary yet. Call adapt(data) before training, or give one.");
  }
  // Keras' files have the reserved tokens before the others, its users may leave them out.
  void set(std::vector<Token> vocabulary) {
    const std::vector<Token> first = reserved();
    if (vocabulary.size() >= first.size() &&
        std::equal(first.begin(), first.end(), vocabulary.begin())) {
      vocabulary.erase(vocabulary.begin(),
                       vocabulary.begin() + static_cast<std::ptrdiff_t>(first.size()));
    }
    vocabulary_ = std::move(vocabulary);
    table_ = internal::table_of(vocabulary_, token_start(),
                                options_.num_oov_indices == 1 ? oov_start() : -1);
  }
  Tensor tokens_of(const Tensor& i) const {
    std::vector<Token> tokens = all();
    const auto size = static_cast<std::int64_t>(tokens.size());
    tokens.push_back(*options_.oov_token);
    if (!table_) {
      return gather(Tensor(tokens), internal::numbers_without_vocabulary(i, no_vocabulary()));
    }
    const Tensor known = logical_and(i >= 0, i < size);
    return gather(Tensor(tokens), where(known, i, size * ones_like(i)));
  }

  LookupOptions<Token> options_;
  internal::TokenCounts<Token> counts_;
  internal::DocumentCounts<Token> documents_;
  std::vector<Token> vocabulary_;
  std::optional<std::int64_t> expected_size_;
  std::optional<lookup::StaticHashTable> table_;
  Tensor idf_;
};

using StringImpl = LookupImpl<std::string>;
using IntegerImpl = LookupImpl<std::int64_t>;

template <class Class, class Token>
Layer read_lookup(internal::ArgumentReader& arguments) {
  LookupOptions<Token> options;
  arguments.settings(options);
  kArguments(arguments, options);
  std::optional<std::int64_t> size;
  arguments("vocabulary_size", size);
  Class layer(options);
  static_cast<LookupImpl<Token>&>(*layer.impl()).expect_size(size);
  return layer;
}
const bool kRegistered[] = {internal::ClassRegistry<Layer>::instance().add(
                                "StringLookup", read_lookup<StringLookup, std::string>),
                            internal::ClassRegistry<Layer>::instance().add(
                                "IntegerLookup", read_lookup<IntegerLookup, std::int64_t>)};

// Makes each element of a vector a document.
Tensor as_documents(const Tensor& data) { return data.rank() == 1 ? reshape(data, {-1, 1}) : data; }

template <class Impl>
Impl& impl_of(const Layer& layer) {
  return static_cast<Impl&>(*layer.impl());
}

}  // namespace

StringLookup::StringLookup(const StringLookupOptions& options)
    : Layer(make_layer<StringImpl>("StringLookup", options)) {}
void StringLookup::adapt(const Tensor& data) const {
  internal::adapt_to<StringImpl>(*this, as_documents(data));
}
void StringLookup::adapt(const data::Dataset& batches) const {
  internal::adapt_to<StringImpl>(*this, batches);
}
std::vector<std::string> StringLookup::get_vocabulary() const {
  return impl_of<StringImpl>(*this).all();
}
std::int64_t StringLookup::vocabulary_size() const {
  return static_cast<std::int64_t>(get_vocabulary().size());
}
IntegerLookup::IntegerLookup(const IntegerLookupOptions& options)
    : Layer(make_layer<IntegerImpl>("IntegerLookup", options)) {}
void IntegerLookup::adapt(const Tensor& data) const {
  internal::adapt_to<IntegerImpl>(*this, as_documents(data));
}
void IntegerLookup::adapt(const data::Dataset& batches) const {
  internal::adapt_to<IntegerImpl>(*this, batches);
}
std::vector<std::int64_t> IntegerLookup::get_vocabulary() const {
  return impl_of<IntegerImpl>(*this).all();
}
std::int64_t IntegerLookup::vocabulary_size() const {
  return static_cast<std::int64_t>(get_vocabulary().size());
}

}  // namespace tandem::keras
