#pragma once

#include <concepts>
#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/core/string.h"

// Arguments that Keras takes by position as well as by name: `LeakyReLU(0.2)` is
// `LeakyReLU({.negative_slope = 0.2})`. Constructors for them are templates, since braces
// (`LeakyReLU({})`) are options.

namespace tandem::keras::internal {

/// A number of C++, and no flag.
template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
/// A text: the name of a metric, say.
template <class T>
concept Text = std::convertible_to<const T&, String>;

/// The options with the argument that was given by position. Throws InvalidArgumentError if the
/// options name it too.
template <class Options, class Member, class Value>
Options with_argument(Options options, Member Options::*member, const Value& value,
                      const char* name) {
  const Member given(value);
  if (!(options.*member == Options{}.*member) && !(options.*member == given)) {
    throw InvalidArgumentError(cat(
        "'", name, "' is given twice, by position and in the options: ", "leave one of them out."));
  }
  options.*member = given;
  return options;
}

}  // namespace tandem::keras::internal
