// n-grams of the tokens of each row of a ragged array.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"

namespace tandem::cpu {
namespace {

class NGrams {
 public:
  explicit NGrams(const KernelContext& c)
      : separator_(c.attr<std::string>("separator")),
        left_(c.attr<std::string>("left_pad")),
        right_(c.attr<std::string>("right_pad")),
        pad_(c.attr<std::int64_t>("pad_width")) {}

  // So many pads at each end; never a gram of nothing else.
  std::int64_t pad(std::int64_t width) const {
    return std::min(pad_ < 0 ? width - 1 : pad_, width - 1);
  }

  std::int64_t count(std::int64_t tokens, std::int64_t width) const {
    return std::max<std::int64_t>(0, tokens + 2 * pad(width) - width + 1);
  }

  // Gram number `i` of `width` tokens out of `tokens` ones, pads included.
  std::string gram(const std::string* tokens, std::int64_t count, std::int64_t width,
                   std::int64_t i) const {
    std::string text;
    for (std::int64_t k = 0; k < width; ++k) {
      if (k > 0) text += separator_;
      const std::int64_t at = i + k - pad(width);
      text += at < 0 ? left_ : at >= count ? right_ : tokens[at];
    }
    return text;
  }

  std::int64_t fixed_pad() const { return pad_; }

 private:
  const std::string &separator_, &left_, &right_;
  std::int64_t pad_;
};

void check_splits(const IntInput& splits, std::int64_t size) {
  if (splits.size() == 0) return;
  if (splits[0] != 0) {
    throw InvalidArgumentError(cat("First split value must be 0, got ", splits[0]));
  }
  for (std::int64_t i = 1; i < splits.size(); ++i) {
    if (splits[i] < splits[i - 1] || splits[i] > size) {
      throw InvalidArgumentError(
          cat("Invalid split value ", splits[i], ", must be in [", splits[i - 1], ", ", size, "]"));
    }
  }
  if (splits[splits.size() - 1] != size) {
    throw InvalidArgumentError(cat("Last split value must be data size. Expected ", size, ", got ",
                                   splits[splits.size() - 1]));
  }
}

void string_ngrams(KernelContext& c) {
  const Array& data = c.input(0);
  const auto& widths = c.attr<std::vector<std::int64_t>>("ngram_widths");
  const bool keep_short = c.attr<bool>("preserve_short_sequences");
  for (const std::int64_t width : widths) {
    if (width <= 0) throw InvalidArgumentError("ngram_widths must contain positive values");
    if (width > std::numeric_limits<std::int32_t>::max()) {
      throw InvalidArgumentError(cat("An n-gram of ", width, " tokens is too wide."));
    }
  }
  if (data.rank() != 1) {
    throw InvalidArgumentError(cat("data must be a vector, but has shape ", data.shape()));
  }
  const IntInput splits(c, 1, "data_splits");
  check_splits(splits, data.num_elements());
  const NGrams ngrams(c);
  std::vector<std::string> grams;
  std::vector<std::int64_t> ends;
  if (splits.size() > 0) ends.push_back(0);
  for (std::int64_t row = 1; row < splits.size(); ++row) {
    const std::string* tokens = data.data<std::string>() + splits[row - 1];
    const std::int64_t count = splits[row] - splits[row - 1];
    const std::size_t before = grams.size();
    // Where there are no tokens at all, there are no grams either.
    for (const std::int64_t width : widths) {
      if (data.num_elements() == 0) break;
      for (std::int64_t i = 0; i < ngrams.count(count, width); ++i) {
        grams.push_back(ngrams.gram(tokens, count, width, i));
      }
    }
    if (keep_short && grams.size() == before && count > 0) {
      if (ngrams.fixed_pad() < 0) {
        throw InvalidArgumentError(
            cat("Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths "
                "are not provided, got ",
                ngrams.fixed_pad()));
      }
      const std::int64_t width = count + 2 * ngrams.fixed_pad();
      grams.push_back(ngrams.gram(tokens, count, width, 0));
    }
    ends.push_back(static_cast<std::int64_t>(grams.size()));
  }
  c.set_output(0, Array::vector(grams));
  Array& out = c.allocate_output(1, Shape{static_cast<std::int64_t>(ends.size())});
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (out.dtype() == DType::kInt32) {
      out.data<std::int32_t>()[i] = static_cast<std::int32_t>(ends[i]);
    } else {
      out.data<std::int64_t>()[i] = ends[i];
    }
  }
}

const KernelRegistration kNGrams{{.op = "StringNGrams", .run = string_ngrams}};

}  // namespace
}  // namespace tandem::cpu
