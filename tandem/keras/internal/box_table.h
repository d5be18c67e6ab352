#pragma once

#include <string>
#include <vector>

namespace tandem::keras::internal {

/// A table of text in boxes, laid out as the Python library that Keras prints with does it.
class BoxTable {
 public:
  struct Column {
    std::string title;
    char align = 'l';  ///< 'l', 'r' or 'c'
    int width = 0;     ///< wished for; all columns shrink or grow together to the table's width
  };
  BoxTable(std::vector<Column> columns, int width);
  void add_row(std::vector<std::string> cells);
  std::string to_string() const;

 private:
  std::vector<int> widths() const;
  std::string line(const std::vector<int>& widths, const char* left, const char* fill,
                   const char* middle, const char* right) const;
  std::string row(const std::vector<int>& widths, const std::vector<std::string>& cells,
                  const char* bar) const;

  std::vector<Column> columns_;
  int width_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tandem::keras::internal
