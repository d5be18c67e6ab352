#include "tandem/graph/internal/einsum_equation.h"

#include <algorithm>
#include <cctype>

#include "tandem/core/error.h"

namespace tandem {
namespace {

[[noreturn]] void malformed(std::string_view equation, std::string_view why) {
  throw InvalidArgumentError(cat("The einsum equation '", equation, "' is malformed: ", why,
                                 " An example of a good one: \"bij,bjk->bik\"."));
}

std::string labels_of(std::string_view equation, std::string_view part) {
  std::string labels;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (part.substr(i, 3) != "...") malformed(equation, "dots come in threes.");
      if (labels.find('.') != std::string::npos)
        malformed(equation, "an operand has at most one ellipsis.");
      labels += '.';
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      labels += c;
    } else {
      malformed(equation, cat("'", c, "' is neither a letter, a comma, an ellipsis nor an arrow."));
    }
  }
  return labels;
}

std::vector<int> expand(const std::string& labels, int ellipsis_axes) {
  std::vector<int> axes;
  for (const char c : labels) {
    if (c != '.') {
      axes.push_back(static_cast<unsigned char>(c));
      continue;
    }
    for (int i = ellipsis_axes; i-- > 0;) axes.push_back(EinsumLabels::kEllipsis + i);
  }
  return axes;
}

}  // namespace

EinsumEquation EinsumEquation::parse(std::string_view equation) {
  EinsumEquation parsed;
  std::string_view left = equation;
  if (const std::size_t arrow = equation.find("->"); arrow != std::string_view::npos) {
    parsed.has_result = true;
    parsed.result = labels_of(equation, equation.substr(arrow + 2));
    left = equation.substr(0, arrow);
  }
  for (std::size_t begin = 0;;) {
    const std::size_t comma = left.find(',', begin);
    parsed.operands.push_back(labels_of(equation, left.substr(begin, comma - begin)));
    if (comma == std::string_view::npos) break;
    begin = comma + 1;
  }
  for (const char c : parsed.result) {
    const bool known =
        std::any_of(parsed.operands.begin(), parsed.operands.end(),
                    [&](const std::string& o) { return o.find(c) != std::string::npos; });
    if (!known && c != '.')
      malformed(equation, cat("the result's label '", c, "' is in no operand."));
  }
  return parsed;
}

std::string EinsumEquation::to_string() const {
  std::string text;
  const auto append = [&](const std::string& labels) {
    for (const char c : labels) text += c == '.' ? std::string("...") : std::string(1, c);
  };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i) text += ',';
    append(operands[i]);
  }
  if (has_result) {
    text += "->";
    append(result);
  }
  return text;
}

EinsumLabels::EinsumLabels(const EinsumEquation& equation, std::span<const int> ranks) {
  if (equation.operands.size() != ranks.size()) {
    throw InvalidArgumentError(cat("Expected ", equation.operands.size(),
                                   " inputs for the equation '", equation.to_string(), "' but got ",
                                   ranks.size(), "."));
  }
  int most = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string& labels = equation.operands[i];
    const bool ellipsis = labels.find('.') != std::string::npos;
    const int letters = static_cast<int>(labels.size()) - (ellipsis ? 1 : 0);
    if (ranks[i] < letters || (!ellipsis && ranks[i] != letters)) {
      throw InvalidArgumentError(cat("Expected input ", i, " to have rank ",
                                     ellipsis ? "at least " : "", letters, " but got rank ",
                                     ranks[i], " (equation '", equation.to_string(), "')."));
    }
    operands.push_back(expand(labels, ranks[i] - letters));
    most = std::max(most, ranks[i] - letters);
  }
  if (most > 0 && equation.result.find('.') == std::string::npos) {
    throw InvalidArgumentError(cat("The result of the einsum equation '", equation.to_string(),
                                   "' must have an ellipsis, as the operands' stands for ", most,
                                   " axes."));
  }
  result = expand(equation.result, most);
}

}  // namespace tandem
