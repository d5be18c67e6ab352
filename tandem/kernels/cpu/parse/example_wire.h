#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

/// The binary form of tensorflow.Example, read in place: a feature is a stretch of the serialized
/// bytes until its values are wanted, and then they go straight to where they belong. Making
/// message objects would take most of the time of parsing.
namespace tandem::cpu {

/// Reads protocol buffer fields from bytes. Every function returns false where they are malformed.
class WireCursor {
 public:
  explicit WireCursor(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool varint(std::uint64_t& value) {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0) {
      value = static_cast<unsigned char>(*at_++);
      return true;
    }
    value = 0;
    for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool bytes(std::string_view& found) {
    std::uint64_t size = 0;
    if (!varint(size) || size > left()) return false;
    found = {at_, static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }
  bool fixed32(std::uint32_t& value) {
    if (left() < sizeof(value)) return false;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return true;
  }
  bool skip(std::uint64_t tag) {
    std::uint64_t number = 0;
    std::uint32_t fixed = 0;
    std::string_view found;
    if (tag >> 3 == 0) return false;
    switch (tag & 7) {
      case 0: return varint(number);
      case 1: return fixed32(fixed) && fixed32(fixed);
      case 2: return bytes(found);
      case 5: return fixed32(fixed);
      default: return false;
    }
  }

 private:
  const char* at_;
  const char* end_;
};

enum class FeatureKind : std::uint8_t { kNone, kBytes, kFloat, kInt64 };

/// The values of a feature, still as they were written.
struct WireFeature {
  FeatureKind kind = FeatureKind::kNone;
  std::string_view list;  ///< a serialized BytesList, FloatList or Int64List

  /// Reads a serialized Feature: the first of its kinds counts.
  static bool read(std::string_view feature, WireFeature& out) {
    out = {};
    WireCursor cursor(feature);
    while (!cursor.done()) {
      std::uint64_t tag = 0;
      if (!cursor.varint(tag)) return false;
      if (tag == 0x0a || tag == 0x12 || tag == 0x1a) {
        out.kind = static_cast<FeatureKind>(tag >> 3);
        return cursor.bytes(out.list);
      }
      if (!cursor.skip(tag)) return false;
    }
    return true;
  }

  /// Calls `run(bytes)` for packed numbers and `one(cursor)` for single values.
  template <class Run, class One>
  bool walk(std::uint64_t packed_tag, std::uint64_t single_tag, Run run, One one) const {
    WireCursor cursor(list);
    while (!cursor.done()) {
      std::uint64_t tag = 0;
      std::string_view packed;
      if (!cursor.varint(tag)) return false;
      if (tag == packed_tag) {
        if (!cursor.bytes(packed) || !run(packed)) return false;
      } else if (tag == single_tag) {
        if (!one(cursor)) return false;
      } else if (!cursor.skip(tag)) {
        return false;
      }
    }
    return true;
  }

  /// How many values there are, without looking at them more than that takes.
  bool count(std::int64_t& n) const {
    n = 0;
    switch (kind) {
      case FeatureKind::kNone: return true;
      case FeatureKind::kFloat:
        return walk(
            0x0a, 0x0d,
            [&](std::string_view packed) {
              n += static_cast<std::int64_t>(packed.size() / 4);
              return packed.size() % 4 == 0;
            },
            [&](WireCursor& cursor) {
              std::uint32_t bits = 0;
              ++n;
              return cursor.fixed32(bits);
            });
      case FeatureKind::kInt64:
        return walk(
            0x0a, 0x08,
            [&](std::string_view packed) {
              for (const char c : packed) n += static_cast<signed char>(c) >= 0;
              return packed.empty() || static_cast<signed char>(packed.back()) >= 0;
            },
            [&](WireCursor& cursor) {
              std::uint64_t value = 0;
              ++n;
              return cursor.varint(value);
            });
      case FeatureKind::kBytes:
        return walk(
            0x0a, 0x0a,
            [&](std::string_view) {
              ++n;
              return true;
            },
            [](WireCursor&) { return false; });
    }
    return false;
  }

  /// Writes the values, at most `room`, and adds up how many there are. T is the kind's type.
  template <class T>
  bool values(T* out, std::int64_t room, std::int64_t& n) const {
    n = 0;
    if constexpr (std::is_same_v<T, float>) {
      return walk(
          0x0a, 0x0d,
          [&](std::string_view packed) {
            const auto found = static_cast<std::int64_t>(packed.size() / 4);
            if (found > 0 && found <= room - n) {
              std::memcpy(out + n, packed.data(), packed.size() / 4 * 4);
            }
            n += found;
            return packed.size() % 4 == 0;
          },
          [&](WireCursor& cursor) {
            std::uint32_t bits = 0;
            if (!cursor.fixed32(bits)) return false;
            if (n++ < room) out[n - 1] = std::bit_cast<float>(bits);
            return true;
          });
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      const auto one = [&](WireCursor& cursor) {
        std::uint64_t value = 0;
        if (!cursor.varint(value)) return false;
        if (n++ < room) out[n - 1] = static_cast<std::int64_t>(value);
        return true;
      };
      return walk(
          0x0a, 0x08,
          [&](std::string_view packed) {
            WireCursor numbers(packed);
            while (!numbers.done()) {
              if (!one(numbers)) return false;
            }
            return true;
          },
          one);
    } else {
      return walk(
          0x0a, 0x0a,
          [&](std::string_view bytes) {
            if (n++ < room) out[n - 1].assign(bytes);
            return true;
          },
          [](WireCursor&) { return false; });
    }
  }
};

/// Calls `entry(key, feature)` for each entry of a map of messages: the features of an Example or
/// of the context of a SequenceExample, the lists of the latter. A map is a message whose field 1
/// is repeated.
template <class Entry>
bool walk_map(std::string_view map, Entry entry) {
  WireCursor cursor(map);
  while (!cursor.done()) {
    std::uint64_t tag = 0;
    if (!cursor.varint(tag)) return false;
    if (tag != 0x0a) {
      if (!cursor.skip(tag)) return false;
      continue;
    }
    std::string_view bytes, key, value;
    if (!cursor.bytes(bytes)) return false;
    WireCursor inside(bytes);
    while (!inside.done()) {
      if (!inside.varint(tag)) return false;
      if (!(tag == 0x0a ? inside.bytes(key) : tag == 0x12 ? inside.bytes(value) : inside.skip(tag)))
        return false;
    }
    if (value.data() == nullptr || !entry(key, value)) return false;
  }
  return true;
}

/// Calls `entry(key, feature)` for each feature of a serialized Example.
template <class Entry>
bool walk_example(std::string_view example, Entry entry) {
  WireCursor cursor(example);
  while (!cursor.done()) {
    std::uint64_t tag = 0;
    std::string_view features;
    if (!cursor.varint(tag)) return false;
    if (tag != 0x0a) {
      if (!cursor.skip(tag)) return false;
    } else if (!cursor.bytes(features) || !walk_map(features, entry)) {
      return false;
    }
  }
  return true;
}

}  // namespace tandem::cpu
