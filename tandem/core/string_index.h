#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Distinct strings, numbered in the order in which they came: open addressing over one array that
/// holds the first bytes of each string, so that looking up a word of a text mostly touches one
/// line of the caches. Reads by several threads need no lock.
class TANDEM_EXPORT StringIndex {
 public:
  StringIndex();

  static constexpr std::int64_t kMissing = -1;
  /// The number of `text`, or kMissing.
  std::int64_t find(std::string_view text) const { return find(Key(text)); }
  /// The number of `text`, which is added if it is missing. Throws ResourceExhaustedError beyond
  /// 2³² - 1 strings or for one of 4 GiB.
  std::int64_t add(std::string_view text) { return add(Key(text)); }

  /// A string with what is computed of it to find it; it refers to its text.
  class Key {
   public:
    Key() = default;
    explicit Key(std::string_view text) : Key(text, head_of(text)) {}
    /// Bytes that can be read: of the text and, if it is shorter than kHead, as many after it.
    static constexpr std::size_t kHead = 8;
    /// The faster way, for a text from which on kHead bytes can be read.
    static Key readable(std::string_view text) {
      std::uint64_t head;
      std::memcpy(&head, text.data(), kHead);
      if (text.size() < kHead) head &= (std::uint64_t{1} << (8 * text.size())) - 1;
      return {text, head};
    }

    std::string_view text() const { return text_; }

   private:
    friend class StringIndex;
    Key(std::string_view given, std::uint64_t first)
        : text_(given), head_(first), hash_(hash_of(given, first)) {}
    static std::uint64_t head_of(std::string_view text);
    static std::uint64_t hash_of(std::string_view text, std::uint64_t head) {
      std::uint64_t mixed = (head ^ text.size()) * 0x9E3779B97F4A7C15u;
      if (text.size() > kHead) mixed ^= hash_of_rest(text.substr(kHead));
      return (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u >> 16;
    }
    static std::uint64_t hash_of_rest(std::string_view text);

    std::string_view text_;
    std::uint64_t head_ = 0, hash_ = 0;
  };
  std::int64_t find(const Key& key) const {
    const Slot& slot = slots_[place_of(key)];
    return slot.number == kFree ? kMissing : std::int64_t{slot.number};
  }
  std::int64_t add(const Key& key);
  /// Begins to fetch what `find` or `add` will look at.
  void prefetch(const Key& key) const { __builtin_prefetch(&slots_[key.hash_ & mask_]); }

  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  std::string_view at(std::int64_t number) const {
    const auto i = static_cast<std::size_t>(number);
    return std::string_view(bytes_.data() + begins_[i], begins_[i + 1] - begins_[i]);
  }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  struct Slot {
    std::uint64_t head = 0;
    std::uint32_t length = 0, number = kFree;
  };

  /// The slot of `key`, or the free one where it would be.
  std::size_t place_of(const Key& key) const {
    for (std::size_t place = key.hash_ & mask_;; place = (place + 1) & mask_) {
      const Slot& slot = slots_[place];
      if (slot.number == kFree) return place;
      if (slot.head == key.head_ && slot.length == key.text_.size() &&
          (slot.length <= Key::kHead || at(slot.number) == key.text_)) {
        return place;
      }
    }
  }
  void grow();

  std::size_t mask_;  ///< the number of slots, a power of two, less one
  std::vector<Slot> slots_;
  std::vector<std::size_t> begins_{0};  ///< of the strings in `bytes_`, by number, and their end
  std::string bytes_;
};

}  // namespace tandem
