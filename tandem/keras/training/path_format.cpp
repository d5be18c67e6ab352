#include "tandem/keras/internal/path_format.h"

#include <cstdio>
#include <optional>

#include "tandem/core/error.h"

namespace tandem::keras::internal {
namespace {

constexpr int kMaxWidth = 100;

struct Field {
  std::string_view path;
  std::string_view name;
  std::string_view format;
};

[[noreturn]] void fail(const Field& field, const std::string& why) {
  throw InvalidArgumentError(cat("ModelCheckpoint: in the path '", field.path, "', {", field.name,
                                 field.format.empty() ? "" : ":", field.format, "} ", why, "."));
}

int take_number(std::string_view& text, const Field& field) {
  int number = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    number = number * 10 + (text.front() - '0');
    if (number > kMaxWidth) fail(field, "asks for too many digits");
    text.remove_prefix(1);
  }
  return number;
}

// [0][width][.precision][type]
std::string formatted(const Field& field, double value, bool whole) {
  std::string_view rest = field.format;
  std::string pattern = "%";
  if (rest.starts_with('0')) pattern += '0';
  const int width = take_number(rest, field);
  if (width > 0) pattern += std::to_string(width);
  bool precise = false;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    pattern += '.' + std::to_string(take_number(rest, field));
    precise = true;
  }
  const char type = rest.empty() ? '\0' : rest.front();
  if (rest.size() > 1) fail(field, "has a format that is not known");
  char text[400];
  if (type == 'd' || (type == '\0' && whole && !precise)) {
    if (!whole) fail(field, "is no whole number, so the format 'd' is not for it");
    std::snprintf(text, sizeof text, (pattern + "lld").c_str(), static_cast<long long>(value));
  } else if (type == 'e' || type == 'f' || type == 'g' || type == 'E' || type == 'G') {
    std::snprintf(text, sizeof text, (pattern + type).c_str(), value);
  } else if (type == '%') {
    std::snprintf(text, sizeof text, (pattern + "f%%").c_str(), value * 100);
  } else if (type == '\0') {
    if (field.format.empty()) return cat(value);
    std::snprintf(text, sizeof text, (pattern + 'g').c_str(), value);
  } else {
    fail(field, "has a format that is not known: use d, e, f, g or %");
  }
  return text;
}

}  // namespace

std::string format_path(std::string_view path, int epoch, std::int64_t batch, const Logs& logs) {
  std::string text;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const char c = path[at];
    if ((c == '{' || c == '}') && at + 1 < path.size() && path[at + 1] == c) {
      text += c;
      ++at;
      continue;
    }
    if (c != '{') {
      text += c;
      continue;
    }
    const std::size_t end = path.find('}', at);
    if (end == std::string_view::npos)
      throw InvalidArgumentError(
          cat("ModelCheckpoint: a '{' in the path '", path, "' has no '}'."));
    const std::string_view inside = path.substr(at + 1, end - at - 1);
    const std::size_t colon = inside.find(':');
    const Field field{path, inside.substr(0, colon),
                      colon == std::string_view::npos ? "" : inside.substr(colon + 1)};
    if (field.name == "epoch") {
      text += formatted(field, epoch, true);
    } else if (field.name == "batch" && batch > 0) {
      text += formatted(field, static_cast<double>(batch), true);
    } else if (const std::optional<double> value = logs.find(field.name)) {
      text += formatted(field, *value, false);
    } else {
      fail(field, cat("names nothing that is known then: the logs are ", logs));
    }
    at = end;
  }
  return text;
}

}  // namespace tandem::keras::internal
