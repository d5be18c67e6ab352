#pragma once

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/io/internal/sub_message.h"
#include "tandem/io/internal/text_tokens.h"

/// Protocol buffers' text form for the structs that make_messages.py makes.
namespace tandem::io::proto {

/// Reads messages from text; throws DataLossError with line and column.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : tokens_(text) {}

  template <class M>
  void read(M& message) {
    read_fields(message, "");
  }

 private:
  static constexpr int kDeepest = 100;

  template <class M>
  struct FieldReader {
    TextReader& reader;
    std::string_view wanted;
    bool done = false;

    template <class T>
    void operator()(std::uint64_t, const char* name, T& member) {
      if (done || name != wanted) return;
      reader.read_field(member);
      done = true;
    }
    template <class T, class Case>
    void operator()(std::uint64_t, const char* name, T& member, Case& which, Case mine) {
      if (done || name != wanted) return;
      if (which != mine) member = T{};
      reader.read_field(member);
      which = mine;
      done = true;
    }
  };

  // Until `end`: "}", ">" or the end of the text ("").
  template <class M>
  void read_fields(M& message, std::string_view end) {
    while (!tokens_.take(end)) {
      const std::string name = tokens_.identifier();
      FieldReader<M> field{*this, name};
      M::fields(message, field);
      if (!field.done) tokens_.fail("there is no field '" + name + "'");
      if (!tokens_.take(",")) tokens_.take(";");
    }
  }
  template <class M>
  void read_message(M& message) {
    tokens_.take(":");
    const bool angle = tokens_.take("<");
    if (!angle) tokens_.expect("{");
    if (++depth_ > kDeepest) tokens_.fail("messages are nested too deep");
    read_fields(message, angle ? ">" : "}");
    --depth_;
  }

  template <class T>
  void read_field(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      tokens_.expect(":");
      value = tokens_.string();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      tokens_.expect(":");
      read_number(value);
    } else {
      read_message(value);
    }
  }
  template <class T>
  void read_field(Sub<T>& value) {
    read_message(value.make());
  }
  template <class T>
  void read_field(std::vector<T>& list) {
    const bool colon = tokens_.take(":");
    if (tokens_.take("[")) {
      if (tokens_.take("]")) return;
      do {
        read_element(list);
      } while (tokens_.take(","));
      tokens_.expect("]");
      return;
    }
    if (!colon &&
        (std::is_same_v<T, std::string> || std::is_arithmetic_v<T> || std::is_enum_v<T>)) {
      tokens_.expect(":");
    }
    read_element(list);
  }
  template <class T>
  void read_element(std::vector<T>& list) {
    T value{};
    if constexpr (std::is_same_v<T, std::string>) {
      value = tokens_.string();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      read_number(value);
    } else {
      read_message(value);
    }
    list.push_back(std::move(value));
  }
  template <class K, class T>
  struct Entry {
    K key{};
    T value{};
    template <class Self, class Visitor>
    static void fields(Self& self, Visitor& visit) {
      visit(1, "key", self.key);
      visit(2, "value", self.value);
    }
  };
  template <class K, class T>
  void read_field(std::map<K, T>& map) {
    std::vector<Entry<K, T>> entries;
    read_field(entries);
    for (auto& entry : entries) map[std::move(entry.key)] = std::move(entry.value);
  }

  template <class T>
  void read_number(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = tokens_.boolean();
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(tokens_.real());
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(tokens_.enum_number(enum_names(T{})));
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(
          tokens_.integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else {
      value = static_cast<T>(tokens_.unsigned_integer(std::numeric_limits<T>::max()));
    }
  }

  TextTokens tokens_;
  int depth_ = 0;
};

/// Writes messages as text, a field a line.
class TextWriter {
 public:
  template <class M>
  static std::string write(const M& message) {
    TextWriter writer;
    M::fields(message, writer);
    return std::move(writer.out_);
  }

  // What `fields` calls.
  template <class T>
  void operator()(std::uint64_t, const char* name, const T& member) {
    put_field(name, member, false);
  }
  template <class T, class Case>
  void operator()(std::uint64_t, const char* name, const T& member, Case which, Case mine) {
    if (which == mine) put_field(name, member, true);
  }

 private:
  template <class M>
  void put_message(const char* name, const M& message) {
    out_.append(indent_, ' ');
    out_ += name;
    out_ += " {\n";
    indent_ += 2;
    M::fields(message, *this);
    indent_ -= 2;
    out_.append(indent_, ' ');
    out_ += "}\n";
  }
  template <class T>
  void put_field(const char* name, const T& value, bool always) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (always || !value.empty()) put_line(name, quoted(value));
    } else if constexpr (std::is_enum_v<T>) {
      if (!always && value == T{}) return;
      put_line(name, enum_text(static_cast<std::int32_t>(value), enum_names(T{})));
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (always || value != T{}) put_line(name, number_text(value));
    } else {
      put_message(name, value);
    }
  }
  template <class T>
  void put_field(const char* name, const Sub<T>& value, bool always) {
    if (always || value.has()) put_message(name, *value);
  }
  template <class T>
  void put_field(const char* name, const std::vector<T>& list, bool) {
    for (const T& value : list) put_field(name, value, true);
  }
  void put_field(const char* name, const std::vector<bool>& list, bool) {
    for (const bool value : list) put_field(name, value, true);
  }
  template <class K, class T>
  void put_field(const char* name, const std::map<K, T>& map, bool) {
    for (const auto& [key, value] : map) {
      out_.append(indent_, ' ');
      out_ += name;
      out_ += " {\n";
      indent_ += 2;
      put_field("key", key, true);
      put_field("value", value, true);
      indent_ -= 2;
      out_.append(indent_, ' ');
      out_ += "}\n";
    }
  }
  void put_line(const char* name, const std::string& value) {
    out_.append(indent_, ' ');
    out_ += name;
    out_ += ": ";
    out_ += value;
    out_ += '\n';
  }
  template <class T>
  static std::string number_text(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else {
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) return "nan";
        if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
      }
      char buffer[64];
      const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
      return {buffer, end};
    }
  }

  std::string out_;
  std::size_t indent_ = 0;
};

}  // namespace tandem::io::proto
