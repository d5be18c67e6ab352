#include "tandem/core/string_index.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr std::size_t kFirstSlots = 16;

}  // namespace

std::uint64_t StringIndex::Key::head_of(std::string_view text) {
  char bytes[kHead] = {};
  std::copy_n(text.data(), std::min(text.size(), kHead), bytes);
  std::uint64_t head;
  std::memcpy(&head, bytes, kHead);
  return head;
}

std::uint64_t StringIndex::Key::hash_of_rest(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

StringIndex::StringIndex() : mask_(kFirstSlots - 1), slots_(kFirstSlots) {}

std::int64_t StringIndex::add(const Key& key) {
  const std::string_view text = key.text_;
  Slot& slot = slots_[place_of(key)];
  if (slot.number != kFree) return slot.number;
  constexpr std::size_t kMax = std::numeric_limits<std::uint32_t>::max();
  if (begins_.size() >= kMax || text.size() > kMax) {
    throw ResourceExhaustedError(cat("A table of ", begins_.size(),
                                     " strings has no room for one of ", text.size(), " bytes."));
  }
  const auto number = static_cast<std::uint32_t>(size());
  bytes_ += text;
  begins_.push_back(bytes_.size());
  slot = {key.head_, static_cast<std::uint32_t>(text.size()), number};
  if (2 * begins_.size() > slots_.size()) grow();
  return number;
}

void StringIndex::grow() {
  slots_.assign(2 * slots_.size(), {});
  mask_ = slots_.size() - 1;
  for (std::uint32_t number = 0; number + 1 < begins_.size(); ++number) {
    const Key key(at(number));
    slots_[place_of(key)] = {key.head_, static_cast<std::uint32_t>(key.text_.size()), number};
  }
}

}  // namespace tandem
