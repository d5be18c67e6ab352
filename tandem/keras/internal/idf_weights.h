#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// log(1 + documents / (1 + documents_with_token)): how Keras weighs a token for "tf_idf".
double inverse_document_frequency(std::int64_t documents, std::int64_t documents_with_token);

/// In how many documents each token is, of the data that a layer learns its vocabulary from.
template <class Token>
class DocumentCounts {
 public:
  /// The tokens of one document.
  void add(std::span<const Token> document) {
    ++documents_;
    for (const Token& token : std::set<Token>(document.begin(), document.end())) ++having_[token];
  }
  /// A weight for each token.
  std::vector<double> weights(const std::vector<Token>& tokens) const {
    std::vector<double> weights;
    for (const Token& token : tokens) {
      const auto found = having_.find(token);
      weights.push_back(
          inverse_document_frequency(documents_, found == having_.end() ? 0 : found->second));
    }
    return weights;
  }

 private:
  std::map<Token, std::int64_t> having_;
  std::int64_t documents_ = 0;
};

/// How wide the rows of the output modes but "int" are.
struct RowSize {
  std::int64_t reserved = 0;  ///< numbers before the vocabulary's: of unknown tokens
  std::int64_t tokens = 0;
  std::optional<std::int64_t> padded = std::nullopt;  ///< the whole row, with pad_to_max_tokens
  std::int64_t depth() const { return padded.value_or(reserved + tokens); }
};

/// The weights of a row, float32: `weights` are those of the tokens, before which their mean is
/// put for the reserved numbers, or of these too; zeros follow up to the row's size. Throws
/// InvalidArgumentError, beginning with `who`, for another number of weights.
Tensor idf_row(const std::string& who, std::vector<double> weights, const RowSize& size);

/// Throws InvalidArgumentError where pad_to_max_tokens has no max_tokens, or weights have another
/// output mode than "tf_idf".
void check_idf_arguments(const char* layer, const std::string& output_mode, bool pad_to_max_tokens,
                         std::optional<std::int64_t> max_tokens,
                         const std::vector<double>& idf_weights);

}  // namespace tandem::keras::internal
