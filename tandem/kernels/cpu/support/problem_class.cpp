#include "tandem/kernels/cpu/support/problem_class.h"

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

const char* name_of(Problem problem) {
  switch (problem) {
    case Problem::kMatMul: return "matmul";
    case Problem::kConvForward: return "conv";
    case Problem::kConvBackpropInput: return "conv_backprop_input";
    case Problem::kConvBackpropFilter: return "conv_backprop_filter";
  }
  return "?";
}

std::string layout_of(const ProblemClass& p) {
  if (p.problem == Problem::kMatMul)
    return cat((p.layout & 1) != 0 ? 't' : 'n', (p.layout & 2) != 0 ? 't' : 'n');
  std::string text = (p.layout & 1) != 0 ? "nchw" : "nhwc";
  if ((p.layout & 2) != 0) text += " strided";
  if ((p.layout & 4) != 0) text += " padded";
  if ((p.layout & 8) != 0) text += " groups";
  return text;
}

}  // namespace

std::string ProblemClass::text() const {
  std::string text = cat(name_of(problem), ' ', dtype, ' ', layout_of(*this), ' ');
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int power = level(sizes[i]);
    text += cat(i == 0 ? "" : " x ", std::int64_t{1} << power, power == 0 ? "" : "+");
  }
  return text;
}

}  // namespace tandem::cpu
