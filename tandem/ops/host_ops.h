#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Ops that act on the world outside: text to the terminal, files, the clock, checks.
namespace tandem {

struct PrintOptions {
  std::int64_t summarize = 3;       ///< so many elements at both ends of every axis; -1: all
  String output_stream = "stderr";  ///< or "stdout", "log(info)", "file:///path"
  String end = "\n";
  String sep = " ";  ///< between the values
};
/// Prints the values whenever it runs; traced functions keep its place among other effects.
TANDEM_EXPORT void print(const std::vector<Tensor>& inputs, const PrintOptions& options = {});

namespace internal {

/// The arguments of one call of `print`: texts as they are, tensors as they will be when it runs.
class TANDEM_EXPORT PrintedArguments {
 public:
  explicit PrintedArguments(const PrintOptions& options) : options_(options) {}

  template <class V>
  void add(const V& value);
  void print() const;

  // What an argument consists of, for `append_printed` of a type of its own.
  void append_text(std::string_view text) { texts_.back() += text; }
  void append_tensor(Tensor value);
  std::int64_t summarize() const { return options_.summarize; }

 private:
  void begin_argument();
  static std::string number_text(double value);
  static std::string number_text(float value);

  const PrintOptions& options_;
  int arguments_ = 0;
  std::vector<std::string> texts_ = {""};  // one more than tensors: before, between and after them
  std::vector<Tensor> tensors_;
};

template <class V>
concept PrintedByItself = requires(PrintedArguments& arguments, const V& value) {
  append_printed(arguments, value);
};

template <class V>
void PrintedArguments::add(const V& value) {
  if constexpr (std::same_as<V, PrintOptions>) return;
  begin_argument();
  if constexpr (std::is_convertible_v<const V&, StringView>) {
    append_text(StringView(value));
  } else if constexpr (std::same_as<V, bool>) {
    append_text(value ? "True" : "False");
  } else if constexpr (std::same_as<V, char>) {
    append_text({&value, 1});
  } else if constexpr (std::integral<V>) {
    append_text(std::to_string(value));
  } else if constexpr (std::same_as<V, float> || std::same_as<V, double>) {
    append_text(number_text(value));
  } else if constexpr (PrintedByItself<V>) {
    append_printed(*this, value);
  } else if constexpr (std::is_constructible_v<Tensor, const V&>) {
    append_tensor(Tensor(value));
  } else if constexpr (!std::same_as<V, PrintOptions>) {
    append_text(cat(value));
  }
}

}  // namespace internal

/// `td::print("step", step, "loss:", loss)`, as tf.print: texts and numbers of C++ stand as they
/// are, tensors with the value that they have when it runs, and what can be written to a stream as
/// it is now. Options may come last.
///
///     td::print("loss:", loss, td::PrintOptions{.output_stream = "stdout"});
template <class... Values>
void print(const Values&... values) {
  PrintOptions options;
  const auto take_options = [&options](const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const PrintOptions&>) options = value;
  };
  (take_options(values), ...);
  internal::PrintedArguments arguments(options);
  (arguments.add(values), ...);
  arguments.print();
}

/// Seconds since 1970, double: the time when it runs.
TANDEM_EXPORT Tensor timestamp();

namespace debugging {
/// Throws InvalidArgumentError with `data` in its message, when it runs, unless `condition` holds.
TANDEM_EXPORT void assert_true(Tensor condition, const std::vector<Tensor>& data,
                               std::int64_t summarize = 3);
}  // namespace debugging

namespace io {
/// The bytes of a file, a string scalar. Throws NotFoundError and its like.
TANDEM_EXPORT Tensor read_file(Tensor filename);
/// Writes a file, and the folders it lies in where they are missing. Others see the old content or
/// the whole of the new; links are followed, permissions kept, devices and pipes written in place.
TANDEM_EXPORT void write_file(Tensor filename, Tensor contents);
/// The paths that a pattern, or any of several, matches, sorted: `*` and `?` within a folder,
/// `[a-z]`. A folder that may not be read is a PermissionDeniedError if the pattern names it; one
/// that wildcards led to is left out, with a warning.
TANDEM_EXPORT Tensor matching_files(Tensor pattern);
}  // namespace io

}  // namespace tandem
