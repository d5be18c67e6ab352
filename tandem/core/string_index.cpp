#include "tandem/core/string_index.h"

#include <functional>
#include <limits>
#include <utility>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr std::size_t kFirstSlots = 16;

}  // namespace

StringIndex::StringIndex() : mask_(kFirstSlots - 1), slots_(kFirstSlots) {}

std::uint64_t StringIndex::hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::string_view StringIndex::at(std::int64_t number) const {
  const auto i = static_cast<std::size_t>(number);
  const std::size_t end = i + 1 < begins_.size() ? begins_[i + 1] : bytes_.size();
  return std::string_view(bytes_).substr(begins_[i], end - begins_[i]);
}

std::int64_t StringIndex::add(std::string_view text) {
  const std::uint64_t hash = hash_of(text);
  Slot& slot = slots_[place_of(text, hash)];
  if (slot.number != kFree) return slot.number;
  constexpr std::size_t kMax = std::numeric_limits<std::uint32_t>::max();
  if (begins_.size() + 1 >= kMax || text.size() > kMax - bytes_.size()) {
    throw ResourceExhaustedError(
        cat("A table of more than ", begins_.size(), " strings is too large."));
  }
  slot = {tag_of(hash), static_cast<std::uint32_t>(begins_.size()),
          static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(text.size())};
  begins_.push_back(bytes_.size());
  bytes_ += text;
  if (2 * begins_.size() > slots_.size()) grow();
  return size_++;
}

void StringIndex::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number == kFree) continue;
    const std::string_view text(bytes_.data() + slot.begin, slot.length);
    slots_[place_of(text, hash_of(text))] = slot;
  }
}

}  // namespace tandem
