#include "tandem/fs/paths.h"

#include <algorithm>

namespace tandem::fs {
namespace {

constexpr std::string_view kSeparator = "://";

// Where the part begins that slashes divide: behind "scheme://".
std::size_t begin_of(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  return scheme.empty() ? 0 : scheme.size() + kSeparator.size();
}

}  // namespace

std::string_view scheme_of(std::string_view path) {
  const std::size_t end = path.find(kSeparator);
  if (end == std::string_view::npos || end == 0) return {};
  const std::string_view scheme = path.substr(0, end);
  const bool plain = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
  return plain ? scheme : std::string_view{};
}

bool is_local(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  return scheme.empty() || scheme == "file";
}

std::string without_file_scheme(std::string_view path) {
  if (scheme_of(path) == "file") path.remove_prefix(begin_of(path));
  return std::string(path);
}

std::string parent_path(std::string_view path) {
  const std::size_t begin = begin_of(path);
  std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash < begin) return {};
  while (slash > begin && path[slash - 1] == '/') --slash;
  // The root of the local files keeps its slash.
  if (slash == begin && is_local(path)) ++slash;
  return slash == begin ? std::string{} : std::string(path.substr(0, slash));
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  path += name;
  return path;
}

}  // namespace tandem::fs
