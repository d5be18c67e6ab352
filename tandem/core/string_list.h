#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/string.h"

namespace tandem {

/// A list of texts, `{"a", "b"}`, each with the check of String: the type of vocabularies, names
/// and tags in options.
class StringList : public std::vector<std::string> {
 public:
  StringList() = default;
  StringList(std::initializer_list<String> texts)
      : std::vector<std::string>(texts.begin(), texts.end()) {}
  StringList(std::vector<std::string> texts) noexcept
      : std::vector<std::string>(std::move(texts)) {}
  /// From a vector of other texts: `std::vector<const char*>`.
  template <std::convertible_to<String> T>
  StringList(const std::vector<T>& texts) {
    reserve(texts.size());
    for (const T& text : texts) push_back(String(text));
  }
};

}  // namespace tandem
