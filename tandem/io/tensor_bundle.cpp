#include "tandem/io/tensor_bundle.h"

#include <charconv>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/io/internal/bundle_format.h"

namespace tandem::io {

std::string TensorSlice::text() const {
  std::string text;
  for (const Extent& extent : extents) {
    if (!text.empty()) text += ':';
    text += extent.length == kWhole ? "-" : cat(extent.start, ",", extent.length);
  }
  return text;
}

namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool to_size(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

}  // namespace

ShapeAndSlice parse_shape_and_slice(const std::string& text) {
  std::vector<std::string_view> parts = split(text, ' ');
  if (parts.size() < 2) {
    throw InvalidArgumentError(
        cat("Need least two elements in shape_and_slice specification: ", text));
  }
  ShapeAndSlice parsed;
  for (const std::string_view part : split(parts.back(), ':')) {
    TensorSlice::Extent extent;
    const std::size_t comma = part.find(',');
    if (part != "-" &&
        (comma == std::string_view::npos || !to_size(part.substr(0, comma), extent.start) ||
         !to_size(part.substr(comma + 1), extent.length))) {
      throw InvalidArgumentError(
          cat("Expected a pair of numbers or '-' but got '", part, "': string = ", parts.back()));
    }
    parsed.slice.extents.push_back(extent);
  }
  parts.pop_back();
  std::vector<std::int64_t> dims;
  for (const std::string_view part : parts) {
    if (!to_size(part, dims.emplace_back())) {
      throw InvalidArgumentError(
          cat("Non numerical dimension in shape_and_slice specification: ", text));
    }
  }
  parsed.shape = Shape(dims);
  static_cast<void>(resolve(parsed.slice, parsed.shape));
  return parsed;
}

}  // namespace tandem::io
