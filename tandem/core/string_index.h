#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Distinct strings, numbered in the order in which they came: open addressing over one array, the
/// strings side by side in another, so that looking up a word of a text mostly stays within the
/// caches. Reads by several threads need no lock.
class TANDEM_EXPORT StringIndex {
 public:
  StringIndex();

  static constexpr std::int64_t kMissing = -1;
  /// The number of `text`, or kMissing.
  std::int64_t find(std::string_view text) const {
    const Slot& slot = slots_[place_of(text, hash_of(text))];
    return slot.number == kFree ? kMissing : std::int64_t{slot.number};
  }
  /// The number of `text`, which is added if it is missing. Throws ResourceExhaustedError beyond
  /// 2³² - 1 strings or 4 GiB of them.
  std::int64_t add(std::string_view text);

  std::int64_t size() const { return size_; }
  std::string_view at(std::int64_t number) const;

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t tag = 0, number = kFree;
    std::uint32_t begin = 0, length = 0;  ///< of the string in `bytes_`
  };

  static std::uint64_t hash_of(std::string_view text);
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  /// The slot of `text`, or the free one where it would be.
  std::size_t place_of(std::string_view text, std::uint64_t hash) const {
    for (std::size_t place = hash & mask_;; place = (place + 1) & mask_) {
      const Slot& slot = slots_[place];
      if (slot.number == kFree) return place;
      if (slot.tag == tag_of(hash) && slot.length == text.size() &&
          text.compare(std::string_view(bytes_.data() + slot.begin, slot.length)) == 0) {
        return place;
      }
    }
  }
  void grow();

  std::int64_t size_ = 0;
  std::size_t mask_;  ///< the number of slots, a power of two, less one
  std::vector<Slot> slots_;
  std::vector<std::size_t> begins_;  ///< of the strings in `bytes_`, by number
  std::string bytes_;
};

}  // namespace tandem
