#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tandem/kernels/cpu/string/expression.h"

namespace tandem::cpu {

/// What is done with the bytes of a text before it is cut into words.
struct TextBytes {
  TextBytes(bool small_letters, const std::optional<ByteClass>& removed_bytes);

  /// 'A' to 'Z' become small letters, before what is removed is looked at.
  bool lower = false;
  /// By byte 16h + l: the bit h % 8 of removed[16 * (h / 8) + l].
  std::array<std::uint8_t, 32> removed = {};
};

/// A text is read in blocks of so many bytes.
constexpr std::size_t kTextBlock = 64;

/// A bit for each byte of a block.
struct BlockMasks {
  std::uint64_t spaces = 0, removed = 0;
};

/// Copies `size` bytes to `to`, with small letters where asked for, fills up the last block with
/// spaces, and finds in each block which bytes are white space and which are to be removed.
/// `to` has room for whole blocks, `masks` is one for each.
void change_text(const TextBytes& bytes, const char* text, std::size_t size, char* to,
                 BlockMasks* masks);

}  // namespace tandem::cpu
