#include "tandem/keras/internal/idf_weights.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::keras::internal {

double inverse_document_frequency(std::int64_t documents, std::int64_t documents_with_token) {
  return std::log(1 + static_cast<double>(documents) /
                          (1.0 + static_cast<double>(documents_with_token)));
}

Tensor idf_row(const std::string& who, std::vector<double> weights, const RowSize& size) {
  const auto given = static_cast<std::int64_t>(weights.size());
  if (given == size.tokens && given > 0) {
    const double mean =
        std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(given);
    weights.insert(weights.begin(), static_cast<std::size_t>(size.reserved), mean);
  } else if (given != size.tokens + size.reserved && given != size.depth()) {
    throw InvalidArgumentError(cat(who, "tf_idf needs a weight in `idf_weights` for each of the ",
                                   size.tokens, " tokens, got ", given, "."));
  }
  weights.resize(static_cast<std::size_t>(size.depth()), 0.0);
  return Tensor(std::vector<float>(weights.begin(), weights.end()));
}

void check_idf_arguments(const char* layer, const std::string& output_mode, bool pad_to_max_tokens,
                         std::optional<std::int64_t> max_tokens,
                         const std::vector<double>& idf_weights) {
  if (pad_to_max_tokens && !max_tokens) {
    throw InvalidArgumentError(
        cat(layer, ": `pad_to_max_tokens` needs `max_tokens`, the size to pad to."));
  }
  if (!idf_weights.empty() && output_mode != "tf_idf") {
    throw InvalidArgumentError(
        cat(layer, ": `idf_weights` are for output_mode \"tf_idf\", not \"", output_mode, "\"."));
  }
}

}  // namespace tandem::keras::internal
