#pragma once

#include <array>
#include <cstdint>

#include "tandem/data/state_archive.h"

namespace tandem::data {

/// The numbers of Philox4x32-10 for a pair of 64-bit seeds, one 32-bit number at a time, in the
/// order in which TensorFlow draws them to shuffle.
class Philox {
 public:
  Philox() = default;
  Philox(std::uint64_t seed, std::uint64_t seed2)
      : key_{low(seed), high(seed)}, counter_{0, 0, low(seed2), high(seed2)} {}

  std::uint32_t operator()() {
    if (used_ == 4) {
      block_ = encrypt();
      for (std::uint32_t& word : counter_) {
        if (++word != 0) break;
      }
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Passes over the next `count` numbers.
  void skip(std::uint64_t count) {
    for (; count > 0 && used_ < 4; --count) ++used_;
    std::uint64_t position = counter_[0] + (std::uint64_t{counter_[1]} << 32);
    position += count / 4;
    counter_[0] = low(position);
    counter_[1] = high(position);
    for (count %= 4; count > 0; --count) (*this)();
  }

  void visit_state(StateArchive& state) {
    for (std::uint32_t& word : key_) state.value(word);
    for (std::uint32_t& word : counter_) state.value(word);
    for (std::uint32_t& word : block_) state.value(word);
    state.value(used_);
    state.require(used_ <= 4, "a random generator's position is impossible");
  }

 private:
  using Block = std::array<std::uint32_t, 4>;
  static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

  Block encrypt() const {
    Block c = counter_;
    std::uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
      c = {high(b) ^ c[1] ^ k0, low(b), high(a) ^ c[3] ^ k1, low(a)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

  std::array<std::uint32_t, 2> key_{};
  Block counter_{};
  Block block_{};
  std::uint32_t used_ = 4;
};

}  // namespace tandem::data
