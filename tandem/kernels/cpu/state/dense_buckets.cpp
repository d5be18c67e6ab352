#include "tandem/kernels/cpu/state/dense_buckets.h"

#include <limits>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::cpu {

DenseBuckets::Bucket DenseBuckets::at(std::int64_t i) const {
  const auto found = used_.find(static_cast<std::uint64_t>(i));
  return found == used_.end() ? Bucket{} : found->second;
}

const std::string* DenseBuckets::key_at(std::uint64_t place) const {
  const auto found = used_.find(place);
  return found == used_.end() ? nullptr : found->second.key;
}

void DenseBuckets::reserve(std::int64_t keys) {
  std::int64_t count = count_;
  while (keys >= count || static_cast<float>(keys) > static_cast<float>(count) * load_) {
    if (count > std::numeric_limits<std::int64_t>::max() / 2) {
      throw ResourceExhaustedError(
          cat(keys, " keys need too many buckets at a max_load_factor of ", load_, "."));
    }
    count *= 2;
  }
  if (count == count_) return;
  count_ = count;
  for (const auto& [place, bucket] : std::exchange(used_, {})) {
    if (bucket.key) insert(bucket.key, bucket.hash);
  }
}

void DenseBuckets::insert(const std::string* key, std::uint64_t hash) {
  const auto mask = static_cast<std::uint64_t>(count_ - 1);
  std::uint64_t at = hash & mask;
  for (std::uint64_t probe = 1; key_at(at) != nullptr; ++probe) at = (at + probe) & mask;
  used_[at] = {key, hash, false};
}

void DenseBuckets::remove(const std::string* key, std::uint64_t hash) {
  const auto mask = static_cast<std::uint64_t>(count_ - 1);
  std::uint64_t at = hash & mask;
  for (std::uint64_t probe = 1; used_.contains(at) && key_at(at) != key; ++probe)
    at = (at + probe) & mask;
  if (key_at(at) != key) {  // assigned where no probe comes
    for (const auto& [place, bucket] : used_) {
      if (bucket.key == key) at = place;
    }
  }
  used_[at] = {nullptr, 0, true};
}

void DenseBuckets::assign(const std::vector<Bucket>& buckets) {
  used_.clear();
  count_ = static_cast<std::int64_t>(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].key || buckets[i].removed) used_.emplace(i, buckets[i]);
  }
}

}  // namespace tandem::cpu
