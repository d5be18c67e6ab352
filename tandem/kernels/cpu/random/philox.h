#pragma once

#include <array>
#include <cstdint>

namespace tandem::cpu {

/// Philox 4x32-10, the counter-based generator of Salmon et al. (2011): block i of a stream is a
/// function of the key and of the counter plus i, so any part of the stream can be had at once.
/// Laid out as TensorFlow does, so that equal seeds give equal numbers.
class Philox {
 public:
  using Block = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;

  Philox() = default;
  /// The stream of two seeds: one is the key, the other the upper half of the counter.
  Philox(std::uint64_t seed, std::uint64_t seed2)
      : counter_{0, 0, low(seed2), high(seed2)}, key_{low(seed), high(seed)} {}
  Philox(Block counter, Key key) : counter_(counter), key_(key) {}

  /// Passes over `blocks` blocks of four numbers.
  void skip(std::uint64_t blocks) {
    const std::uint64_t lower = join(counter_[0], counter_[1]);
    const std::uint64_t sum = lower + blocks;
    counter_[0] = low(sum);
    counter_[1] = high(sum);
    if (sum < lower && ++counter_[2] == 0) ++counter_[3];
  }

  /// The next block.
  Block operator()() {
    Block x = counter_;
    Key key = key_;
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * x[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * x[2];
      x = {high(b) ^ x[1] ^ key[0], low(b), high(a) ^ x[3] ^ key[1], low(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    skip(1);
    return x;
  }

  const Block& counter() const { return counter_; }
  const Key& key() const { return key_; }

  static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
  static std::uint64_t join(std::uint32_t low_half, std::uint32_t high_half) {
    return (std::uint64_t{high_half} << 32) | low_half;
  }

 private:
  Block counter_{};
  Key key_{};
};

/// The numbers of a stream one by one.
class PhiloxNumbers {
 public:
  explicit PhiloxNumbers(const Philox& stream) : stream_(stream) {}
  std::uint32_t operator()() {
    if (next_ == 4) {
      block_ = stream_();
      next_ = 0;
    }
    return block_[static_cast<std::size_t>(next_++)];
  }

 private:
  Philox stream_;
  Philox::Block block_{};
  int next_ = 4;
};

/// What a stateless op makes of its two seeds: both go through Philox once, so that neighbouring
/// seeds give streams that have nothing in common.
inline Philox scrambled_philox(std::uint64_t seed0, std::uint64_t seed1) {
  const Philox::Block mixed =
      Philox({Philox::low(seed0), Philox::high(seed0), Philox::low(seed1), Philox::high(seed1)},
             {0x3ec8f720, 0x02461e29})();
  return Philox({0, 0, mixed[2], mixed[3]}, {mixed[0], mixed[1]});
}

}  // namespace tandem::cpu
