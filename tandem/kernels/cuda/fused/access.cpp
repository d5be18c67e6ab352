#include "tandem/kernels/cuda/fused/access.h"

#include <algorithm>

namespace tandem::cuda {

Access Access::of(const Sizes& input, const Sizes& result) {
  Access access;
  const std::size_t missing = result.size() - input.size();
  std::int64_t divisor = 1, stride = 1;
  bool repeats = true;  // the axis before, further in, is one that the input lacks
  for (std::size_t axis = result.size(); axis-- > 0;) {
    if (result[axis] == 1) continue;
    const bool lacks = axis < missing || input[axis - missing] == 1;
    if (!lacks) {
      if (repeats) access.runs.push_back({divisor, 1, stride});
      access.runs.back().size *= result[axis];
      stride *= result[axis];
    }
    repeats = lacks;
    divisor *= result[axis];
  }
  if (!access.runs.empty() && !repeats) access.runs.back().size = 0;
  std::reverse(access.runs.begin(), access.runs.end());
  return access;
}

bool Access::is_identity() const {
  return runs.size() == 1 && runs[0].divisor == 1 && runs[0].size == 0;
}

std::string Access::form() const {
  std::string text;
  for (const Run& run : runs) {
    text += run.divisor != 1 ? (run.size != 0 ? "b" : "d") : (run.size != 0 ? "m" : "i");
  }
  return text.empty() ? "s" : text;
}

std::string Access::expression(std::size_t first) const {
  if (runs.empty()) return "0";
  std::string text;
  const auto number = [&] { return "p.at[" + std::to_string(first++) + "]"; };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) text += " + ";
    text += "i";
    if (runs[i].divisor != 1) text += " / " + number();
    if (runs[i].size != 0) text += " % " + number();
    if (i + 1 < runs.size()) text += " * " + number();
  }
  return text;
}

void Access::append_numbers(std::vector<std::int64_t>& numbers) const {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].divisor != 1) numbers.push_back(runs[i].divisor);
    if (runs[i].size != 0) numbers.push_back(runs[i].size);
    if (i + 1 < runs.size()) numbers.push_back(runs[i].stride);
  }
}

}  // namespace tandem::cuda
