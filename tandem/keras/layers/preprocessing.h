#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/core/string_list.h"
#include "tandem/data/dataset.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/positional.h"
#include "tandem/ops/ragged_tensor.h"
#include "tandem/runtime/tensor.h"

/// Layers that turn raw features into what a network takes. Those with `adapt` learn from data
/// once, before training; all work in models, in calls by themselves, and in Dataset::map.
namespace tandem::keras {

/// No axis (std::nullopt), one or several.
struct OptionalAxes : std::optional<std::vector<int>> {
  OptionalAxes(std::nullopt_t) {}
  OptionalAxes(int axis) : OptionalAxes(std::vector<int>{axis}) {}
  OptionalAxes(std::initializer_list<int> axes) : OptionalAxes(std::vector<int>(axes)) {}
  OptionalAxes(std::vector<int> axes) : std::optional<std::vector<int>>(std::move(axes)) {}
};

struct NormalizationOptions {
  /// Axes with a mean and a variance for each index; std::nullopt: one for all.
  OptionalAxes axis = -1;
  std::optional<std::vector<double>> mean = std::nullopt;      ///< given, instead of learnt
  std::optional<std::vector<double>> variance = std::nullopt;  ///< likewise
  bool invert = false;                                         ///< back from normalized values
  String name = {};
  DTypePolicy dtype = {};
};
/// (x - mean) / √variance.
class TANDEM_EXPORT Normalization : public Layer {
 public:
  explicit Normalization(const NormalizationOptions& options = {});
  template <internal::Integer T>
  explicit Normalization(T axis, const NormalizationOptions& options = {})
      : Normalization(internal::with_argument(options, &NormalizationOptions::axis, axis, "axis")) {
  }
  void adapt(const Tensor& data) const;
  template <tandem::internal::Sequence R>
  void adapt(const R& values) const {
    adapt(Tensor(values));
  }
  /// Elements are the data, or (data, …).
  void adapt(const data::Dataset& batches) const;
};

struct DiscretizationOptions {
  std::vector<float> bin_boundaries = {};               ///< given, instead of learnt
  std::optional<std::int64_t> num_bins = std::nullopt;  ///< to be learnt, of equal counts
  String output_mode = "int";                           ///< or "one_hot", "multi_hot", "count"
  String name = {};
};
/// Numbers to the number of their bin.
class TANDEM_EXPORT Discretization : public Layer {
 public:
  explicit Discretization(const DiscretizationOptions& options);
  template <std::same_as<std::vector<float>> Boundaries>
  explicit Discretization(const Boundaries& bin_boundaries,
                          const DiscretizationOptions& options = {})
      : Discretization(internal::with_argument(options, &DiscretizationOptions::bin_boundaries,
                                               bin_boundaries, "bin_boundaries")) {}
  void adapt(const Tensor& data) const;
  template <tandem::internal::Sequence R>
  void adapt(const R& values) const {
    adapt(Tensor(values));
  }
  void adapt(const data::Dataset& batches) const;
  std::vector<float> bin_boundaries() const;
};

struct CategoryEncodingOptions {
  std::int64_t num_tokens = 0;
  String output_mode = "multi_hot";  ///< or "one_hot", "count"
  String name = {};
};
/// Integers below num_tokens to rows of num_tokens floats.
class TANDEM_EXPORT CategoryEncoding : public Layer {
 public:
  explicit CategoryEncoding(const CategoryEncodingOptions& options);
  template <internal::Integer T>
  explicit CategoryEncoding(T num_tokens, const CategoryEncodingOptions& options = {})
      : CategoryEncoding(internal::with_argument(options, &CategoryEncodingOptions::num_tokens,
                                                 num_tokens, "num_tokens")) {}
};

struct HashingOptions {
  std::int64_t num_bins = 0;
  std::optional<String> mask_value = std::nullopt;  ///< gets bin 0, and nothing else does
  std::optional<std::vector<std::int64_t>> salt = std::nullopt;  ///< one or two numbers
  String output_mode = "int";  ///< or "one_hot", "multi_hot", "count"
  String name = {};
};
/// Texts or integers to one of num_bins numbers, by a hash that is the same everywhere.
class TANDEM_EXPORT Hashing : public Layer {
 public:
  explicit Hashing(const HashingOptions& options);
  template <internal::Integer T>
  explicit Hashing(T num_bins, const HashingOptions& options = {})
      : Hashing(internal::with_argument(options, &HashingOptions::num_bins, num_bins, "num_bins")) {
  }
};

template <class Token>
struct LookupOptions {
  /// One token; texts are checked for null.
  using OptionalToken =
      std::optional<std::conditional_t<std::is_same_v<Token, std::string>, String, Token>>;
  /// Given, instead of learnt.
  std::conditional_t<std::is_same_v<Token, std::string>, StringList, std::vector<Token>>
      vocabulary = {};
  /// For "tf_idf" with a vocabulary that is given: a weight for each token of it.
  std::vector<double> idf_weights = {};
  std::optional<std::int64_t> max_tokens = std::nullopt;
  std::int64_t num_oov_indices = 1;
  /// Gets 0 with the output mode "int", before the unknown ones, and nothing with the others.
  OptionalToken mask_token = std::nullopt;
  OptionalToken oov_token = std::nullopt;  ///< "[UNK]" or -1
  String output_mode = "int";              ///< or "one_hot", "multi_hot", "count", "tf_idf"
  /// Rows of max_tokens numbers with the output modes but "int", even if the vocabulary is smaller.
  bool pad_to_max_tokens = false;
  bool invert = false;  ///< numbers to tokens
  String name = {};
};
using StringLookupOptions = LookupOptions<std::string>;
using IntegerLookupOptions = LookupOptions<std::int64_t>;
/// Texts to numbers: 0 … num_oov_indices - 1 for unknown ones, then the vocabulary.
class TANDEM_EXPORT StringLookup : public Layer {
 public:
  explicit StringLookup(const StringLookupOptions& options = {});
  template <internal::Integer T>
  explicit StringLookup(T max_tokens, const StringLookupOptions& options = {})
      : StringLookup(internal::with_argument(options, &StringLookupOptions::max_tokens, max_tokens,
                                             "max_tokens")) {}
  /// The most frequent tokens, ties in the order of the alphabet backwards, as Keras has them.
  void adapt(const Tensor& data) const;
  template <tandem::internal::Sequence R>
  void adapt(const R& values) const {
    adapt(Tensor(values));
  }
  void adapt(const data::Dataset& batches) const;
  /// Unknown tokens first ("[UNK]").
  std::vector<std::string> get_vocabulary() const;
  std::int64_t vocabulary_size() const;
};
/// Integers to numbers, in the way of StringLookup.
class TANDEM_EXPORT IntegerLookup : public Layer {
 public:
  explicit IntegerLookup(const IntegerLookupOptions& options = {});
  template <internal::Integer T>
  explicit IntegerLookup(T max_tokens, const IntegerLookupOptions& options = {})
      : IntegerLookup(internal::with_argument(options, &IntegerLookupOptions::max_tokens,
                                              max_tokens, "max_tokens")) {}
  void adapt(const Tensor& data) const;
  template <tandem::internal::Sequence R>
  void adapt(const R& values) const {
    adapt(Tensor(values));
  }
  void adapt(const data::Dataset& batches) const;
  std::vector<std::int64_t> get_vocabulary() const;
  std::int64_t vocabulary_size() const;
};

/// How TextVectorization prepares texts: by a name of Keras', td::none, or a callable
/// `Tensor(Tensor)` from a vector of texts to one of texts, made of td's functions.
class TextStandardization {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  TextStandardization(String name) : name_(std::move(name)) {}
  TextStandardization(const char* name, int line = __builtin_LINE(),
                      const char* function = __builtin_FUNCTION())
      : name_(name, line, function) {}
  TextStandardization(const std::string& name) : name_(name) {}
  TextStandardization(std::nullopt_t) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&>) TextStandardization(F function)
      : function_(std::move(function)) {}
  /// "" for none, and for a callable.
  const String& name() const { return name_; }
  const Function& function() const { return function_; }

 private:
  String name_;
  Function function_;
};

/// How TextVectorization splits texts into tokens: by a name of Keras', td::none, or a callable
/// from a vector of texts to a RaggedTensor of each text's tokens, or a matrix of them, whose rows
/// are filled up with "".
class TextSplitting {
 public:
  using Function = std::function<RaggedTensor(const Tensor&)>;

  TextSplitting(String name) : name_(std::move(name)) {}
  TextSplitting(const char* name, int line = __builtin_LINE(),
                const char* function = __builtin_FUNCTION())
      : name_(name, line, function) {}
  TextSplitting(const std::string& name) : name_(name) {}
  TextSplitting(std::nullopt_t) {}
  template <class F>
  requires(std::is_invocable_r_v<RaggedTensor, const F&, const Tensor&>) TextSplitting(F function)
      : function_(std::move(function)) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, const F&, const Tensor&>) TextSplitting(F function)
      : function_([function = std::move(function)](const Tensor& texts) {
          return RaggedTensor::from_tensor(function(texts), {.padding = ""});
        }) {}
  /// "" for none, and for a callable.
  const String& name() const { return name_; }
  const Function& function() const { return function_; }

 private:
  String name_;
  Function function_;
};

struct TextVectorizationOptions {
  std::optional<std::int64_t> max_tokens = std::nullopt;
  /// "lower_and_strip_punctuation", "lower", "strip_punctuation", "" or td::none, or a callable.
  TextStandardization standardize = "lower_and_strip_punctuation";
  TextSplitting split = "whitespace";     ///< or "character", "" or td::none, or a callable
  std::vector<std::int64_t> ngrams = {};  ///< widths; empty: single tokens
  String output_mode = "int";             ///< or "multi_hot", "count", "tf_idf"
  std::optional<std::int64_t> output_sequence_length = std::nullopt;
  /// Rows of max_tokens numbers with the output modes but "int", even if the vocabulary is smaller.
  bool pad_to_max_tokens = false;
  StringList vocabulary = {};
  /// For "tf_idf" with a vocabulary that is given: a weight for each token of it.
  std::vector<double> idf_weights = {};
  String name = {};
};
/// Texts [batch] or [batch, 1] to rows of token numbers: 0 fills up, 1 is unknown.
///
///     td::keras::TextVectorization vectorize({
///         .standardize = [](const td::Tensor& texts) {
///           return td::strings::regex_replace(td::strings::lower(texts), "<br />", " ");
///         },
///         .split = [](const td::Tensor& texts) { return td::strings::split_ragged(texts, ",");
///         }});
///
/// A model with callables has no form in a file.
class TANDEM_EXPORT TextVectorization : public Layer {
 public:
  explicit TextVectorization(const TextVectorizationOptions& options = {});
  template <internal::Integer T>
  explicit TextVectorization(T max_tokens, const TextVectorizationOptions& options = {})
      : TextVectorization(internal::with_argument(options, &TextVectorizationOptions::max_tokens,
                                                  max_tokens, "max_tokens")) {}
  void adapt(const Tensor& data) const;
  template <tandem::internal::Sequence R>
  void adapt(const R& values) const {
    adapt(Tensor(values));
  }
  void adapt(const data::Dataset& batches) const;
  std::vector<std::string> get_vocabulary() const;
  std::int64_t vocabulary_size() const;
};

struct ResizingOptions {
  String interpolation = "bilinear";
  bool crop_to_aspect_ratio = false;
  /// The whole image in its proportions, in the middle of a border.
  bool pad_to_aspect_ratio = false;
  String fill_mode = "constant";  ///< of the border; Keras has no other
  double fill_value = 0;          ///< likewise
  bool antialias = false;
  String name = {};
};
/// Images to a size.
class TANDEM_EXPORT Resizing : public Layer {
 public:
  Resizing(std::int64_t height, std::int64_t width, const ResizingOptions& options = {});
};

struct CropOptions {
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// The middle of images; smaller ones are resized.
class TANDEM_EXPORT CenterCrop : public Layer {
 public:
  CenterCrop(std::int64_t height, std::int64_t width, const CropOptions& options = {});
};

}  // namespace tandem::keras
