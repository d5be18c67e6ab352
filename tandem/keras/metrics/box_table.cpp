#include "tandem/keras/internal/box_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tandem::keras::internal {
namespace {

// Characters that a terminal shows, if each code point takes one place.
int shown(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string first_places(const std::string& text, int count) {
  std::size_t end = 0;
  for (int seen = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && seen++ == count) break;
  }
  return text.substr(0, end);
}

std::string cropped(const std::string& text, int width) {
  return shown(text) <= width ? text : first_places(text, width - 1) + "…";
}

// Words on lines of at most `width` places; a longer word gets a line of its own and is cropped.
std::vector<std::string> wrapped(const std::string& text, int width) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find(' ', at);
    end = end == std::string::npos ? text.size() : end;
    const std::string word = text.substr(at, end - at);
    const int needed = shown(lines.back()) + (lines.back().empty() ? 0 : 1) + shown(word);
    if (!lines.back().empty() && needed > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  for (std::string& line : lines) line = cropped(line, width);
  return lines;
}

std::string aligned(const std::string& text, int width, char align) {
  const int space = std::max(0, width - shown(text));
  const int before = align == 'r' ? space : align == 'c' ? space / 2 : 0;
  return std::string(static_cast<std::size_t>(before), ' ') + text +
         std::string(static_cast<std::size_t>(space - before), ' ');
}

}  // namespace

BoxTable::BoxTable(std::vector<Column> columns, int width)
    : columns_(std::move(columns)), width_(width) {}
void BoxTable::add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

// The widths wished for, and one place more on each side; then each column in turn takes its share
// of what is too much (or too little).
std::vector<int> BoxTable::widths() const {
  std::vector<int> widths;
  int total = 0;
  for (const Column& column : columns_) {
    widths.push_back(column.width + 2);
    total += widths.back();
  }
  int remaining = total - (width_ - static_cast<int>(columns_.size()) - 1);
  auto columns_left = static_cast<int>(columns_.size());
  for (int& width : widths) {
    const int share =
        static_cast<int>(std::nearbyint(static_cast<double>(remaining) / columns_left--));
    width = std::max(3, width - share);
    remaining -= share;
  }
  return widths;
}

std::string BoxTable::line(const std::vector<int>& widths, const char* left, const char* fill,
                           const char* middle, const char* right) const {
  std::string text = left;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (i > 0) text += middle;
    for (int n = 0; n < widths[i]; ++n) text += fill;
  }
  return text + right + "\n";
}

std::string BoxTable::row(const std::vector<int>& widths, const std::vector<std::string>& cells,
                          const char* bar) const {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 1;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    columns.push_back(wrapped(cells[i], widths[i] - 2));
    height = std::max(height, columns.back().size());
  }
  std::string text;
  for (std::size_t n = 0; n < height; ++n) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = n < columns[i].size() ? columns[i][n] : "";
      text += std::string(bar) + " " + aligned(cell, widths[i] - 2, columns_[i].align) + " ";
    }
    text += std::string(bar) + "\n";
  }
  return text;
}

std::string BoxTable::to_string() const {
  const std::vector<int> widths = this->widths();
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string text = line(widths, "┏", "━", "┳", "┓") + row(widths, titles, "┃");
  text += line(widths, "┡", "━", "╇", "┩");
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (i > 0) text += line(widths, "├", "─", "┼", "┤");
    text += row(widths, rows_[i], "│");
  }
  return text + line(widths, "└", "─", "┴", "┘");
}

}  // namespace tandem::keras::internal
