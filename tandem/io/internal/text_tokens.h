#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/io/internal/sub_message.h"

namespace tandem::io::proto {

/// The words of protocol buffers' text form.
class TextTokens {
 public:
  explicit TextTokens(std::string_view text) : text_(text) {}

  /// Takes the symbol if it comes next; "" is the end of the text.
  bool take(std::string_view symbol);
  void expect(std::string_view symbol);
  std::string identifier();
  /// Adjacent strings are one.
  std::string string();
  bool boolean();
  double real();
  std::int64_t integer(std::int64_t least, std::int64_t most);
  std::uint64_t unsigned_integer(std::uint64_t most);
  std::int32_t enum_number(EnumNames names);
  /// Throws DataLossError that begins with line and column.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  void skip_space();
  std::string_view word();
  std::uint64_t digits(std::string_view word, std::uint64_t most);
  void read_quoted(std::string& out);
  void read_escape(std::string& out);

  std::string_view text_;
  std::size_t at_ = 0;
};

/// "abc\n" in quotes, other bytes than printable ones escaped.
std::string quoted(std::string_view bytes);
/// The value's name, or its number if it has none.
std::string enum_text(std::int32_t number, EnumNames names);

}  // namespace tandem::io::proto
