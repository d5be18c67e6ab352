#include "tandem/graph/internal/attention_axes.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr std::string_view kOwn[] = {"TD", "SD", "TS", "SE", "TE"};  // besides the batches

bool is_batch(char letter) { return letter == 'B' || letter == 'N'; }

std::string sorted(std::string letters) {
  std::sort(letters.begin(), letters.end());
  return letters;
}

std::string batches_of(const std::string& letters) {
  std::string batches;
  for (const char letter : letters)
    if (is_batch(letter)) batches += letter;
  return batches;
}

// No letter is repeated, and all batches are among these.
bool are_among(const std::string& letters, const std::string& batches) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (letters.find(letters[i], i + 1) != std::string::npos) return false;
    if (is_batch(letters[i]) && batches.find(letters[i]) == std::string::npos) return false;
  }
  return true;
}

bool ends_well(int operand, char last) {
  if (operand == AttentionAxes::kScores) return last == 'S';
  if (operand == AttentionAxes::kOutput) return last == 'E';
  return !is_batch(last);
}

}  // namespace

AttentionAxes AttentionAxes::read(const std::vector<std::string>& axes) {
  AttentionAxes made;
  if (axes.size() != static_cast<std::size_t>(kOperands))
    throw InvalidArgumentError(cat("`axes` must have five texts, but has ", axes.size(), "."));
  const std::string batches = batches_of(axes[kScores]);
  for (int i = 0; i < kOperands; ++i) {
    const std::string& letters = axes[static_cast<std::size_t>(i)];
    const bool all = i == kScores || i == kOutput;
    const std::string wanted = std::string(kOwn[i]) + (all ? batches : batches_of(letters));
    if (sorted(letters) != sorted(wanted) || !are_among(letters, batches) ||
        !ends_well(i, letters.back())) {
      throw InvalidArgumentError(cat("`axes` has \"", letters, "\" for operand ", i,
                                     ", which must be made of ", kOwn[i], " and batches."));
    }
    made.of[static_cast<std::size_t>(i)] = letters;
  }
  return made;
}

AttentionSizes::AttentionSizes(const AttentionAxes& axes, const PartialShape& query,
                               const PartialShape& key, const PartialShape& value) {
  sizes.fill(1);
  for (const char own : {'T', 'S', 'D', 'E'}) sizes[AttentionAxes::kLetters.find(own)] = -1;
  const auto take = [&](AttentionAxes::Operand operand, const PartialShape& shape) {
    const std::string& letters = axes.of[operand];
    if (!shape.has_rank()) {
      for (const char letter : letters)
        if (is_batch(letter)) sizes[AttentionAxes::kLetters.find(letter)] = -1;
      return;
    }
    if (shape.rank() != static_cast<int>(letters.size())) {
      throw InvalidArgumentError(cat("Input ", static_cast<int>(operand == 3 ? 2 : operand),
                                     " must have the axes ", letters, ", but its shape is ", shape,
                                     "."));
    }
    for (int i = 0; i < shape.rank(); ++i) {
      const char letter = letters[static_cast<std::size_t>(i)];
      std::int64_t& known = sizes[AttentionAxes::kLetters.find(letter)];
      const std::int64_t here = shape.dim(i);
      if (is_batch(letter) ? known == 1 || (known < 0 && here > 1) : known < 0) {
        known = here;
      } else if (here >= 0 && known >= 0 && here != known && !(is_batch(letter) && here == 1)) {
        throw InvalidArgumentError(cat("The sizes of axis ", letter, " of query ", query, ", key ",
                                       key, " and value ", value, " must be equal, but are ", known,
                                       " and ", here, "."));
      }
    }
  };
  take(AttentionAxes::kQuery, query);
  take(AttentionAxes::kKey, key);
  take(AttentionAxes::kValue, value);
}

PartialShape AttentionSizes::shape(std::string_view letters) const {
  std::vector<std::int64_t> dims;
  for (const char letter : letters) dims.push_back((*this)[letter]);
  return PartialShape(std::move(dims));
}

}  // namespace tandem
