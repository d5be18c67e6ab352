#include "tandem/kernels/cpu/dense_buckets.h"

#include <algorithm>
#include <utility>

namespace tandem::cpu {

DenseBuckets::DenseBuckets(std::int64_t count, float load)
    : buckets_(static_cast<std::size_t>(count)), load_(load) {}

void DenseBuckets::reserve(std::int64_t keys) {
  std::size_t count = buckets_.size();
  while (static_cast<float>(keys) > static_cast<float>(count) * load_) count *= 2;
  if (count == buckets_.size()) return;
  const std::vector<Bucket> before = std::exchange(buckets_, std::vector<Bucket>(count));
  for (const Bucket& bucket : before) {
    if (bucket.key) insert(bucket.key, bucket.hash);
  }
}

void DenseBuckets::insert(const std::string* key, std::uint64_t hash) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t at = hash & mask;
  for (std::size_t probe = 1; buckets_[at].key != nullptr; ++probe) at = (at + probe) & mask;
  buckets_[at] = {key, hash, false};
}

void DenseBuckets::remove(const std::string* key, std::uint64_t hash) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t at = hash & mask;
  for (std::size_t probe = 1; probe <= mask && buckets_[at].key != key; ++probe) {
    at = (at + probe) & mask;
  }
  if (buckets_[at].key == key) {
    buckets_[at] = {nullptr, 0, true};
    return;
  }
  for (Bucket& bucket : buckets_) {  // assigned where no probe comes
    if (bucket.key == key) bucket = {nullptr, 0, true};
  }
}

void DenseBuckets::clear() { std::fill(buckets_.begin(), buckets_.end(), Bucket{}); }

}  // namespace tandem::cpu
