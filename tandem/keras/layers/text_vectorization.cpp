#include <algorithm>
#include <optional>
#include <tuple>
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
#include "tandem/ops/lookup.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/string_functions.h"

namespace tandem::keras {
namespace {

// Keras says None where Tandem's option is empty.
std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string quoted(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += cat(all.empty() ? "'" : ", '", name, "'");
  return all;
}

constexpr auto kArguments = [](auto& a, auto& o) {
  a("max_tokens", o.max_tokens);
  a("output_mode", o.output_mode);
  a("output_sequence_length", o.output_sequence_length);
  a("pad_to_max_tokens", o.pad_to_max_tokens);
  a("vocabulary", o.vocabulary);
  a("idf_weights", o.idf_weights);
  a.fixed("encoding", "utf-8");
};

class TextVectorizationImpl final : public LayerImpl, public internal::StoredVocabulary {
 public:
  explicit TextVectorizationImpl(const TextVectorizationOptions& o)
      : LayerImpl("TextVectorization", {.name = o.name}), options_(o) {
    for (const auto& [what, given, known] :
         {std::tuple("standardize", o.standardize.name(),
                     std::vector<std::string>{"lower_and_strip_punctuation", "lower",
                                              "strip_punctuation", ""}),
          std::tuple("split", o.split.name(),
                     std::vector<std::string>{"whitespace", "character", ""}),
          std::tuple("output_mode", o.output_mode,
                     std::vector<std::string>{"int", "multi_hot", "count", "tf_idf"})}) {
      if (std::find(known.begin(), known.end(), given) == known.end())
        throw InvalidArgumentError(cat("TextVectorization: there is no ", what, " '", given,
                                       "'. Choose one of ", quoted(known), "."));
    }
    if (o.max_tokens && *o.max_tokens <= 1) {
      throw InvalidArgumentError(
          cat("TextVectorization: if set, `max_tokens` must be greater than 1, got ", *o.max_tokens,
              ". One token stands for all that are not known."));
    }
    internal::check_idf_arguments("TextVectorization", o.output_mode, o.pad_to_max_tokens,
                                  o.max_tokens, o.idf_weights);
    without_weights();
    keep_dtypes();
    set_arguments(internal::written_arguments(kArguments, o));
    if (o.vocabulary.empty()) return;
    set(o.vocabulary);
    if (o.output_mode == "tf_idf") set_weights(o.idf_weights);
  }
  // How many tokens there will be, of a layer whose vocabulary is read later.
  void expect_size(std::optional<std::int64_t> size) { expected_size_ = size; }
  void describe(Config& config) const override {
    const auto set = [&](const char* name, const auto& given) {
      config.set(name, given.function() ? config_value(ConfigObject{.class_name = "custom"})
                                        : internal::to_config(unless_empty(given.name())));
    };
    set("standardize", options_.standardize);
    set("split", options_.split);
    config.set("ngrams", internal::to_config(options_.ngrams));
    if (table_) config.set("vocabulary_size", static_cast<std::int64_t>(all().size()));
    if (!keeps_vocabulary_in_config()) return;
    config.set("vocabulary", internal::to_config(all()));
    const auto weights = cast(slice(idf_, {0}, {row_size().reserved + row_size().tokens}), float64);
    config.set("idf_weights", internal::to_config(weights.to_vector<double>()));
  }

  std::vector<std::string> parts() const override { return {"_lookup_layer"}; }
  std::optional<std::string> vocabulary_text() const override {
    if (!table_ || !options_.vocabulary.empty() || keeps_vocabulary_in_config())
      return std::nullopt;
    std::string text;
    for (const std::string& token : all()) text += token + "\n";
    text.pop_back();
    return text;
  }
  void set_vocabulary_text(std::string_view text, const Tensor& weights) override {
    set(internal::vocabulary_lines(text));
    if (options_.output_mode != "tf_idf") return;
    if (!weights.defined())
      throw DataLossError(cat(prefix(), "the file has no idf_weights for its vocabulary."));
    set_weights(cast(reshape(weights, {-1}), float64).to_vector<double>());
  }
  Tensor idf_weights() const override { return idf_; }

  void begin() { counts_ = {}, documents_ = {}; }
  void add(const Tensor& data) { add(row_splits_and_words(data)); }
  void add(const std::pair<Tensor, Tensor>& splits_and_words) {
    const auto& [splits, words] = splits_and_words;
    counts_.add(words);
    if (options_.output_mode != "tf_idf") return;
    const auto places = splits.data<std::int64_t>();
    const auto all = words.data<std::string>();
    for (std::size_t row = 0; row + 1 < places.size(); ++row)
      documents_.add({all.begin() + places[row], all.begin() + places[row + 1]});
  }
  void add(const data::Dataset& batches) {
    if (options_.standardize.function() || options_.split.function()) {
      // The user's functions are called by the thread that asked for it, one call at a time.
      for (const data::Element& batch : batches) add(batch[0]);
      return;
    }
    // Words are counted while those of the next texts are split.
    const auto split = [this](const data::Element& batch) {
      auto [splits, words] = row_splits_and_words(batch[0]);
      return data::Element{std::move(splits), std::move(words)};
    };
    const auto words = batches.map(split, {.num_parallel_calls = data::kAutotune, .traced = false})
                           .prefetch(data::kAutotune);
    for (const data::Element& element : words) add(std::pair(element[0], element[1]));
  }
  void finish() {
    counts_.remove("");
    counts_.remove("[UNK]");
    std::optional<std::int64_t> limit = options_.max_tokens;
    if (limit) limit = *limit - first();
    set(counts_.most_frequent(limit));
    if (options_.output_mode != "tf_idf") return;
    set_weights(documents_.weights(vocabulary_));
  }
  std::vector<std::string> all() const {
    std::vector<std::string> tokens;
    if (first() == 2) tokens.emplace_back("");
    tokens.emplace_back("[UNK]");
    tokens.insert(tokens.end(), vocabulary_.begin(), vocabulary_.end());
    return tokens;
  }

  Tensor call(const Tensor& x, bool) override {
    const std::string missing =
        cat(prefix(), "has no vocabulary yet. Call adapt(texts) before training, or give one.");
    const RaggedTensor tokens = tokens_of(x);
    const Tensor& words = tokens.flat_values();
    const RaggedTensor numbers = tokens.with_flat_values(
        table_ ? table_->lookup(words) : internal::numbers_without_vocabulary(words, missing));
    if (options_.output_mode == "int") {
      return numbers.to_tensor(0, {-1, options_.output_sequence_length.value_or(-1)});
    }
    // How often each token is in each row.
    if (!table_ && !expected_size_) throw FailedPreconditionError(missing);
    const std::int64_t depth =
        table_ || options_.pad_to_max_tokens ? row_size().depth() : *expected_size_;
    const Tensor places = stack({cast(numbers.value_rowids(), int64), numbers.flat_values()}, 1);
    const Tensor rows = cast(numbers.nrows(), int64);
    const Tensor counts = scatter_nd(places, ones_like(numbers.flat_values(), float32),
                                     IntList(stack({rows, Tensor(depth)})));
    if (options_.output_mode == "count") return cast(counts, int64);
    if (options_.output_mode == "multi_hot") return cast(counts > 0.0, int64);
    if (!table_) return counts;
    if (!idf_.defined())
      throw FailedPreconditionError(cat(prefix(), "tf_idf needs adapt, for its weights."));
    return counts * idf_;
  }

 private:
  // Keras compares the weights in a file with the vocabulary there, and refuses its own files where
  // the row is padded. It takes both from the configuration, as if they had been given.
  bool keeps_vocabulary_in_config() const {
    return options_.vocabulary.empty() && idf_.defined() && options_.pad_to_max_tokens &&
           row_size().depth() > row_size().reserved + row_size().tokens;
  }
  std::int64_t first() const { return options_.output_mode == "int" ? 2 : 1; }
  void set(std::vector<std::string> vocabulary) {
    const std::vector<std::string> reserved =
        first() == 2 ? std::vector<std::string>{"", "[UNK]"} : std::vector<std::string>{"[UNK]"};
    if (vocabulary.size() >= reserved.size() &&
        std::equal(reserved.begin(), reserved.end(), vocabulary.begin()))
      vocabulary.erase(vocabulary.begin(), vocabulary.begin() + first());
    vocabulary_ = std::move(vocabulary);
    table_ = internal::table_of(vocabulary_, first(), first() - 1);
  }
  internal::RowSize row_size() const {
    internal::RowSize size{.reserved = first(),
                           .tokens = static_cast<std::int64_t>(vocabulary_.size())};
    if (options_.pad_to_max_tokens) size.padded = *options_.max_tokens;
    return size;
  }
  void set_weights(std::vector<double> weights) {
    idf_ = internal::idf_row(prefix(), std::move(weights), row_size());
  }
  Tensor standardized(const Tensor& x) const {
    Tensor texts = options_.standardize.function()(x);
    if (!texts.defined() || texts.dtype() != DType::kString ||
        !texts.partial_shape().is_compatible(x.partial_shape())) {
      throw InvalidArgumentError(cat(prefix(),
                                     "`standardize` must return a text for each text, string",
                                     x.partial_shape(), ", but returned ", described(texts), "."));
    }
    return texts;
  }
  RaggedTensor split(const Tensor& x) const {
    RaggedTensor tokens = options_.split.function()(x);
    const Tensor values = tokens.defined() ? tokens.flat_values() : Tensor();
    const bool texts = values.defined() && values.dtype() == DType::kString;
    if (!texts || tokens.ragged_rank() != 1 || values.rank() > 1 ||
        !PartialShape({tokens.shape().dim(0)}).is_compatible(x.partial_shape())) {
      throw InvalidArgumentError(cat(
          prefix(), "`split` must return a list of tokens for each text of string",
          x.partial_shape(), ", a RaggedTensor of string[?,?] such as td::strings::split_ragged ",
          "makes, but returned ",
          tokens.defined() ? cat("one of ", tokens.dtype(), tokens.shape()) : "an undefined one",
          "."));
    }
    return tokens;
  }
  static std::string described(const Tensor& t) {
    return t.defined() ? cat(t.dtype(), t.partial_shape()) : "an undefined tensor";
  }
  std::pair<Tensor, Tensor> row_splits_and_words(const Tensor& texts) const {
    const RaggedTensor tokens = tokens_of(texts);
    return {cast(tokens.row_splits(), int64), tokens.flat_values()};
  }
  RaggedTensor tokens_of(const Tensor& given) const {
    Tensor x = given;
    if (x.rank() == 0) x = reshape(x, {1});
    if (x.rank() > 1) x = squeeze(x, {-1});
    const std::string& standardize = options_.standardize.name();
    if (options_.standardize.function()) x = standardized(x);
    if (standardize == "lower" || standardize == "lower_and_strip_punctuation")
      x = strings::lower(x);
    if (standardize == "strip_punctuation" || standardize == "lower_and_strip_punctuation") {
      x = strings::regex_replace(x, Tensor("[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~\\']"),
                                 Tensor(""));
    }
    RaggedTensor tokens;
    if (options_.split.function()) {
      tokens = split(x);
    } else if (options_.split.name() == "whitespace") {
      tokens = strings::split_ragged(x);
    } else if (options_.split.name() == "character") {
      tokens = strings::unicode_split(x, "UTF-8");
    } else {
      tokens = RaggedTensor::from_row_lengths(x, ones_like(x, int64), false);
    }
    return options_.ngrams.empty() ? tokens : strings::ngrams(tokens, options_.ngrams);
  }

  TextVectorizationOptions options_;
  internal::TokenCounts<std::string> counts_;
  internal::DocumentCounts<std::string> documents_;
  std::vector<std::string> vocabulary_;
  std::optional<std::int64_t> expected_size_;
  std::optional<lookup::StaticHashTable> table_;
  Tensor idf_;
};

Layer read(internal::ArgumentReader& arguments) {
  TextVectorizationOptions options;
  arguments.settings(options);
  kArguments(arguments, options);
  std::optional<std::string> standardize = options.standardize.name(), split = options.split.name();
  arguments("standardize", standardize);
  arguments("split", split);
  options.standardize = standardize.value_or("");
  options.split = split.value_or("");
  arguments("ngrams", options.ngrams);
  // One number is the largest of all widths.
  if (const auto* largest = std::get_if<std::int64_t>(arguments.find("ngrams"))) {
    options.ngrams.clear();
    if (*largest > 100) throw InvalidArgumentError(cat("ngrams of ", *largest, " words."));
    for (std::int64_t width = 1; width <= *largest; ++width) options.ngrams.push_back(width);
  }
  std::optional<std::int64_t> size;
  arguments("vocabulary_size", size);
  TextVectorization layer(options);
  static_cast<TextVectorizationImpl&>(*layer.impl()).expect_size(size);
  return layer;
}
const bool kRegistered = internal::ClassRegistry<Layer>::instance().add("TextVectorization", read);

}  // namespace

TextVectorization::TextVectorization(const TextVectorizationOptions& options)
    : Layer(make_layer<TextVectorizationImpl>(options)) {}
void TextVectorization::adapt(const Tensor& data) const {
  internal::adapt_to<TextVectorizationImpl>(*this, data);
}
void TextVectorization::adapt(const data::Dataset& batches) const {
  auto& impl = static_cast<TextVectorizationImpl&>(*this->impl());
  impl.begin();
  impl.add(batches);
  impl.finish();
}
std::vector<std::string> TextVectorization::get_vocabulary() const {
  return static_cast<TextVectorizationImpl&>(*impl()).all();
}
std::int64_t TextVectorization::vocabulary_size() const {
  return static_cast<std::int64_t>(get_vocabulary().size());
}

}  // namespace tandem::keras
