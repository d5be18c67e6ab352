#include "tandem/fs/stores/internal/content_range.h"

#include <charconv>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

// A number at the beginning, which is taken from the text.
bool take_number(std::string_view& text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view part) {
  if (!text.starts_with(part)) return false;
  text.remove_prefix(part.size());
  return true;
}

}  // namespace

ContentRange parse_content_range(std::string_view text, const std::string& path) {
  std::string_view rest = text;
  ContentRange range;
  std::uint64_t last = 0;
  if (!take(rest, "bytes ") || !take_number(rest, range.begin) || !take(rest, "-") ||
      !take_number(rest, last) || !take(rest, "/") || !take_number(rest, range.total) ||
      !rest.empty() || last < range.begin || last >= range.total) {
    throw DataLossError(cat(path, "; The store's answer cannot be understood: its range is '",
                            text.substr(0, 100), "'"));
  }
  range.size = last - range.begin + 1;
  return range;
}

void check_range(const HttpResponse& response, std::uint64_t offset, std::uint64_t size,
                 const std::string& path) {
  if (response.status == 416) return;  // beyond the end: nothing comes
  if (response.status != 206) {
    if (offset == 0) return;  // the whole
    throw DataLossError(path + "; The store sent the whole content where a range was asked for");
  }
  const ContentRange range = parse_content_range(response.header("content-range"), path);
  if (range.begin != offset) {
    throw DataLossError(path + "; The store sent another range than was asked for");
  }
  if (range.total != size) {
    throw DataLossError(cat(path, "; The content has ", range.total, " bytes now, and had ", size,
                            " when it was opened. Was it changed meanwhile?"));
  }
}

}  // namespace tandem::fs
