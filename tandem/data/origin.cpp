#include "tandem/data/internal/origin.h"

#include <algorithm>
#include <cstddef>

#include "tandem/core/error.h"

namespace tandem::data {
namespace {

constexpr std::size_t kLongest = 1024;

const std::string& text_of(const Tensor& name) { return name.array().data<std::string>()[0]; }

bool printable(const std::string& text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

std::string quoted(const Element& names) {
  std::string list;
  for (const Tensor& name : names) {
    const std::string& text = text_of(name);
    if (printable(text)) list += cat(list.empty() ? "\"" : ", \"", text, "\"");
  }
  return list;
}

}  // namespace

void note_names(const Element& element, Element& names) {
  names.clear();
  for (const Tensor& tensor : element) {
    if (!tensor.defined() || tensor.dtype() != DType::kString) continue;
    if (tensor.rank() == 0 && text_of(tensor).size() <= kLongest) names.push_back(tensor);
  }
}

std::string told(const Element& names, const Element& before) {
  const std::string own = quoted(names);
  const std::string first = quoted(before);
  if (own.empty() && first.empty()) return "";
  if (own.empty() || first.empty()) return cat(" (from ", own, first, ")");
  return cat(" (made of ", own, ", from ", first, ")");
}

}  // namespace tandem::data
