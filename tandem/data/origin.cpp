#include "tandem/data/internal/origin.h"

#include <cstddef>
#include <string_view>

#include "tandem/core/error.h"

namespace tandem::data {
namespace {

constexpr std::size_t kLongest = 1024;

const std::string& text_of(const Tensor& name) { return name.array().data<std::string>()[0]; }

// The bytes of the character that begins at `at`, or 0 if none of UTF-8 does.
std::size_t character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (size == 0 || size > text.size() - at) return 0;
  for (std::size_t i = at + 1; i < at + size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (size < 2) return size;
  const unsigned second = byte(at + 1);
  // Longer than need be, half of a pair of UTF-16, beyond the last character.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  // Control characters, too, are of no name.
  return first == 0xc2 && second < 0xa0 ? 0 : size;
}

// Other strings are the contents of files, say.
bool printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x20 || text[at] == 0x7f) return false;
    const std::size_t size = character(text, at);
    if (size == 0) return false;
    at += size;
  }
  return !text.empty();
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
