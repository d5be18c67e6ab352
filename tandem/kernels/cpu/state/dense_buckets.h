#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem::cpu {

/// Where the keys of a dense hash table lie: TensorFlow exports such tables bucket by bucket, and
/// reads them back without hashing, so both must agree. Open addressing, the n-th probe n buckets
/// on, in a power of two of them; a bucket is free if it was never used or its key was removed.
/// Not thread-safe. Keys are the caller's and stay where they are as long as they are in.
class DenseBuckets {
 public:
  struct Bucket {
    const std::string* key = nullptr;
    std::uint64_t hash = 0;
    bool removed = false;
  };
  /// More buckets are made when more than `load` of them would be used.
  DenseBuckets(std::int64_t count, float load) : count_(count), load_(load) {}

  std::int64_t count() const { return count_; }
  Bucket at(std::int64_t i) const;
  /// Makes room for so many keys in all. Throws ResourceExhaustedError for more buckets than can be
  /// counted.
  void reserve(std::int64_t keys);
  /// Inserts a key that is not in the table.
  void insert(const std::string* key, std::uint64_t hash);
  void remove(const std::string* key, std::uint64_t hash);
  /// Takes buckets as another table had them; how many must be a power of two of at least 4.
  void assign(const std::vector<Bucket>& buckets);
  void clear() { used_.clear(); }

  static bool fits(std::int64_t count) { return count >= 4 && (count & (count - 1)) == 0; }
  /// The hash of a key of several elements, combined from left to right.
  static std::uint64_t combine(std::uint64_t hash, std::uint64_t next) {
    return hash ^ (next + 0x9e3779b97f4a7800 + (hash << 10) + (hash >> 4));
  }

 private:
  const std::string* key_at(std::uint64_t place) const;

  std::int64_t count_;
  float load_;
  std::map<std::uint64_t, Bucket> used_;  // by place: however many there are announced
};

}  // namespace tandem::cpu
