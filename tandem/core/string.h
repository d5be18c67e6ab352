#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tandem/core/export.h"

namespace tandem {

namespace internal {

/// Throws InvalidArgumentError for a null C string that the user gave at this line of this
/// function.
[[noreturn]] TANDEM_EXPORT void throw_null_string(int line, const char* function);

}  // namespace internal

/// A std::string that a null C string does not break: the type of names, paths and modes in the
/// options of layers, optimizers, datasets and functions. Made from null it throws
/// InvalidArgumentError with the caller's line, where std::string throws std::logic_error.
///
///     std::string name = td::keras::DenseOptions{.name = "logits"}.name;
///
/// `?:` wants one type on both sides: beside a const String write `named ? name : td::String()`,
/// since C++ converts neither a const String nor a std::string to the other's type there.
class String : public std::string {
 public:
  String() = default;
  String(const char* text, int line = __builtin_LINE(), const char* function = __builtin_FUNCTION())
      : std::string(text ? text : (internal::throw_null_string(line, function), "")) {}
  String(std::string text) noexcept : std::string(std::move(text)) {}
  String(std::string_view text) : std::string(text) {}
  /// Takes whatever converts to std::string, such as std::filesystem::path.
  template <class T>
  requires(std::is_convertible_v<const T&, std::string> &&
           !std::is_convertible_v<const T&, std::string_view>) String(const T& text)
      : std::string(static_cast<std::string>(text)) {}
};

/// A std::string_view with the check of String: the type of parameters that take a text without
/// keeping it. Lives no longer than the characters that it was made from.
class StringView : public std::string_view {
 public:
  constexpr StringView() = default;
  constexpr StringView(const char* text, int line = __builtin_LINE(),
                       const char* function = __builtin_FUNCTION())
      : std::string_view(text ? text : (internal::throw_null_string(line, function), "")) {}
  constexpr StringView(std::string_view text) : std::string_view(text) {}
  StringView(const std::string& text) : std::string_view(text) {}
};

}  // namespace tandem
