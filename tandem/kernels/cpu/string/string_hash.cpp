// Hashes of strings: three that TensorFlow names, equal to its own on every machine.

#include "tandem/kernels/cpu/string/string_hash.h"

#include <farmhash.h>

#include <cstring>
#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/string/map_strings.h"

namespace tandem::cpu {
namespace {

// Eight bytes as a little-endian number; fewer at the end of a string.
std::uint64_t load(const char* data, std::size_t count = 8) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[i])) << (8 * i);
  }
  return word;
}

// SipHash-2-4.
class SipHash {
 public:
  SipHash(std::uint64_t k0, std::uint64_t k1)
      : v0_(k0 ^ 0x736f6d6570736575),
        v1_(k1 ^ 0x646f72616e646f6d),
        v2_(k0 ^ 0x6c7967656e657261),
        v3_(k1 ^ 0x7465646279746573) {}

  std::uint64_t operator()(std::string_view s) {
    const auto last = static_cast<std::uint64_t>(s.size()) << 56;
    for (; s.size() >= 8; s.remove_prefix(8)) add(load(s.data()));
    add(last | load(s.data(), s.size()));
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
  void add(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }
  void round() {
    v0_ += v1_;
    v1_ = rotate(v1_, 13) ^ v0_;
    v0_ = rotate(v0_, 32);
    v2_ += v3_;
    v3_ = rotate(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = rotate(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = rotate(v1_, 17) ^ v2_;
    v2_ = rotate(v2_, 32);
  }
  std::uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

std::uint64_t murmur(std::string_view text) {
  std::string_view s = text;
  constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  std::uint64_t hash = kSeed ^ (s.size() * kMultiplier);
  for (; s.size() >= 8; s.remove_prefix(8)) {
    std::uint64_t k = load(s.data()) * kMultiplier;
    k ^= k >> 47;
    hash = (hash ^ (k * kMultiplier)) * kMultiplier;
  }
  if (!s.empty()) hash = (hash ^ load(s.data(), s.size())) * kMultiplier;
  hash ^= hash >> 47;
  hash *= kMultiplier;
  return hash ^ (hash >> 47);
}

std::uint64_t fingerprint(std::string_view text) {
  return NAMESPACE_FOR_HASH_FUNCTIONS::Fingerprint64(text.data(), text.size());
}

std::uint64_t keyed_hash(std::uint64_t key0, std::uint64_t key1, std::string_view text) {
  return SipHash(key0, key1)(text);
}

namespace {

template <class Hash>
void to_bucket(KernelContext& c, Hash hash) {
  const auto buckets = c.attr<std::int64_t>("num_buckets");
  if (buckets < 1) {
    throw InvalidArgumentError(cat("num_buckets must be at least 1, not ", buckets, "."));
  }
  map_strings<std::int64_t>(c, 20, [&](const std::string& s) {
    return static_cast<std::int64_t>(hash(s) % static_cast<std::uint64_t>(buckets));
  });
}

void hash_bucket(KernelContext& c) { to_bucket(c, murmur); }

void hash_bucket_fast(KernelContext& c) { to_bucket(c, fingerprint); }

void hash_bucket_strong(KernelContext& c) {
  const auto& key = c.attr<std::vector<std::int64_t>>("key");
  if (key.size() != 2) throw InvalidArgumentError("Key must have 2 elements");
  const SipHash hash(static_cast<std::uint64_t>(key[0]), static_cast<std::uint64_t>(key[1]));
  to_bucket(c, [&](const std::string& s) { return SipHash(hash)(s); });
}

const KernelRegistration kHash{{.op = "StringToHashBucket", .run = hash_bucket}};
const KernelRegistration kFast{{.op = "StringToHashBucketFast", .run = hash_bucket_fast}};
const KernelRegistration kStrong{{.op = "StringToHashBucketStrong", .run = hash_bucket_strong}};

}  // namespace
}  // namespace tandem::cpu
