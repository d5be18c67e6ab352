#pragma once

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::data {

/// The names of files, or patterns, that a function takes: one, several in braces, a vector of
/// them, or a tensor of strings (a scalar or a vector, such as interleave's function gets). Throws
/// InvalidArgumentError for null.
class TANDEM_EXPORT FileNames {
 public:
  template <class T, std::enable_if_t<std::is_convertible_v<const T&, std::string>, int> = 0>
  FileNames(const T& name) : names_{String(name)} {}  // NOLINT: implicit, as all of these
  FileNames(std::initializer_list<String> names) : names_(names.begin(), names.end()) {}
  FileNames(std::vector<std::string> names) : names_(std::move(names)) {}              // NOLINT
  FileNames(const std::vector<String>& names) : names_(names.begin(), names.end()) {}  // NOLINT
  /// Throws InvalidArgumentError for tensors that hold no strings or have two axes or more.
  FileNames(const Tensor& names);  // NOLINT

  const std::vector<std::string>& list() const& { return names_; }
  std::vector<std::string> list() && { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

}  // namespace tandem::data
