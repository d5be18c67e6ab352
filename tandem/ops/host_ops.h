#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Ops that act on the world outside: text to the terminal, files, the clock, checks.
namespace tandem {

struct PrintOptions {
  std::int64_t summarize = 3;       ///< so many elements at both ends of every axis; -1: all
  String output_stream = "stderr";  ///< or "stdout", "log(info)", "file:///path"
  String end = "\n";
};
/// Prints the values, with blanks between them, whenever it runs; traced functions keep its place
/// among other effects.
TANDEM_EXPORT void print(const std::vector<Tensor>& inputs, const PrintOptions& options = {});
/// `td::print("step", step, "loss", loss)`
template <std::convertible_to<Tensor>... Values>
requires(sizeof...(Values) > 0) void print(const Values&... values) {
  print(std::vector<Tensor>{Tensor(values)...}, PrintOptions{});
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
