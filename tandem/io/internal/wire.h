#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/sub_message.h"

/// Protocol buffers' binary form for the structs that make_messages.py makes. We read and write it
/// ourselves: the library's symbols would clash with TensorFlow's in a process that holds both.
namespace tandem::io::proto {

/// Reads messages from bytes; unknown fields are passed over. Throws DataLossError.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes, int depth = 0)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), depth_(depth) {
    if (depth > kDeepest) fail("messages are nested too deep");
  }

  template <class M>
  void read(M& message) {
    while (at_ != end_) {
      const std::uint64_t tag = varint();
      FieldReader<M> field{*this, tag >> 3, static_cast<int>(tag & 7)};
      if (field.number == 0) fail("a field has number 0");
      M::fields(message, field);
      if (!field.done) skip(field.wire_type);
    }
  }

 private:
  static constexpr int kDeepest = 100;
  enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  template <class M>
  struct FieldReader {
    WireReader& reader;
    std::uint64_t number;
    int wire_type;
    bool done = false;

    template <class T>
    void operator()(std::uint64_t n, const char*, T& member) {
      if (n == number && !done) done = reader.read_field(wire_type, member);
    }
    template <class T, class Case>
    void operator()(std::uint64_t n, const char*, T& member, Case& which, Case mine) {
      if (n != number || done) return;
      if (which != mine) member = T{};
      done = reader.read_field(wire_type, member);
      if (done) which = mine;
    }
  };

  [[noreturn]] static void fail(const char* why) { throw DataLossError(why); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) fail("the bytes are cut off");
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is too long");
  }
  template <class Bits>
  Bits fixed() {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(Bits)) fail("the bytes are cut off");
    Bits bits;
    std::memcpy(&bits, at_, sizeof(Bits));
    at_ += sizeof(Bits);
    return bits;
  }
  std::string_view bytes() {
    const std::uint64_t size = varint();
    if (size > static_cast<std::size_t>(end_ - at_)) fail("the bytes are cut off");
    const std::string_view found(at_, size);
    at_ += size;
    return found;
  }
  void skip(int wire_type) {
    switch (wire_type) {
      case kVarint: varint(); return;
      case kFixed64: fixed<std::uint64_t>(); return;
      case kBytes: bytes(); return;
      case kFixed32: fixed<std::uint32_t>(); return;
      default: fail("a field has an unknown form");
    }
  }

  // Each returns false if the field has another form than the member, which is then passed over.
  template <class T>
  bool read_number(int wire_type, T& value) {
    if constexpr (std::is_same_v<T, float>) {
      if (wire_type != kFixed32) return false;
      value = std::bit_cast<float>(fixed<std::uint32_t>());
    } else if constexpr (std::is_same_v<T, double>) {
      if (wire_type != kFixed64) return false;
      value = std::bit_cast<double>(fixed<std::uint64_t>());
    } else if constexpr (std::is_same_v<T, Fixed32>) {
      if (wire_type != kFixed32) return false;
      value = Fixed32{fixed<std::uint32_t>()};
    } else if constexpr (std::is_same_v<T, Sint64>) {
      if (wire_type != kVarint) return false;
      const std::uint64_t bits = varint();
      value = Sint64{static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1))};
    } else if (wire_type == kFixed64) {
      value = static_cast<T>(fixed<std::uint64_t>());
    } else if (wire_type == kVarint) {
      value = static_cast<T>(varint());
    } else {
      return false;
    }
    return true;
  }
  template <class T>
  bool read_field(int wire_type, T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return read_number(wire_type, value);
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
      if (wire_type != kBytes) return false;
      value = bytes();
      return true;
    } else {
      if (wire_type != kBytes) return false;
      WireReader(bytes(), depth_ + 1).read(value);
      return true;
    }
  }
  template <class T>
  bool read_field(int wire_type, Sub<T>& value) {
    return read_field(wire_type, value.make());
  }
  template <class T>
  bool read_field(int wire_type, std::vector<T>& list) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (wire_type == kBytes) {  // packed
        WireReader packed(bytes(), depth_);
        constexpr int kForm = std::is_same_v<T, float>    ? kFixed32
                              : std::is_same_v<T, double> ? kFixed64
                                                          : kVarint;
        while (packed.at_ != packed.end_) {
          T value{};
          packed.read_number(kForm, value);
          list.push_back(value);
        }
        return true;
      }
    }
    T value{};
    if (!read_field(wire_type, value)) return false;
    list.push_back(std::move(value));
    return true;
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
  bool read_field(int wire_type, std::map<K, T>& map) {
    Entry<K, T> entry;
    if (!read_field(wire_type, entry)) return false;
    map[std::move(entry.key)] = std::move(entry.value);
    return true;
  }

  const char* at_;
  const char* end_;
  int depth_;
};

/// Writes messages; the same bytes for the same message.
class WireWriter {
 public:
  template <class M>
  static std::string write(const M& message) {
    WireWriter writer;
    M::fields(message, writer);
    return std::move(writer.out_);
  }

  // What `fields` calls.
  template <class T>
  void operator()(std::uint64_t number, const char*, const T& member) {
    put_field(number, member, false);
  }
  template <class T, class Case>
  void operator()(std::uint64_t number, const char*, const T& member, Case which, Case mine) {
    if (which == mine) put_field(number, member, true);
  }

 private:
  void put_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void put_bytes(std::uint64_t number, std::string_view bytes) {
    put_varint(number << 3 | 2);
    put_varint(bytes.size());
    out_ += bytes;
  }
  template <class T>
  void put_number(T value) {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Fixed32> ||
                  std::is_same_v<T, Fixed64>) {
      char bytes[sizeof(T)];
      std::memcpy(bytes, &value, sizeof(T));
      out_.append(bytes, sizeof(T));
    } else if constexpr (std::is_same_v<T, Sint64>) {
      const auto number = static_cast<std::int64_t>(value);
      put_varint(static_cast<std::uint64_t>(number) << 1 ^
                 static_cast<std::uint64_t>(number >> 63));
    } else {  // negative numbers take ten bytes
      put_varint(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    }
  }
  // Defaults are left out, but for members of a oneof.
  template <class T>
  void put_field(std::uint64_t number, const T& value, bool always) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (!always && value == T{}) return;
      constexpr bool kFour = std::is_same_v<T, float> || std::is_same_v<T, Fixed32>;
      constexpr bool kEight = std::is_same_v<T, double> || std::is_same_v<T, Fixed64>;
      constexpr int kForm = kFour ? 5 : kEight ? 1 : 0;
      put_varint(number << 3 | kForm);
      put_number(value);
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
      if (always || !value.empty()) put_bytes(number, value);
    } else {
      put_bytes(number, write(value));
    }
  }
  template <class T>
  void put_field(std::uint64_t number, const Sub<T>& value, bool always) {
    if (always || value.has()) put_bytes(number, write(*value));
  }
  template <class T>
  void put_field(std::uint64_t number, const std::vector<T>& list, bool) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (list.empty()) return;
      WireWriter packed;
      for (const T value : list) packed.put_number(value);
      put_bytes(number, packed.out_);
    } else {
      for (const T& value : list) put_field(number, value, true);
    }
  }
  template <class K, class T>
  void put_field(std::uint64_t number, const std::map<K, T>& map, bool) {
    for (const auto& [key, value] : map) {
      WireWriter entry;
      entry.put_field(1, key, true);
      entry.put_field(2, value, true);
      put_bytes(number, entry.out_);
    }
  }

  std::string out_;
};

}  // namespace tandem::io::proto
