// Texts looked through in blocks of 64 bytes, in vectors.

#include "tandem/kernels/cpu/string/text_blocks.h"

#include <algorithm>
#include <cstring>

#include "tandem/kernels/cpu/string/map_strings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/string/text_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
BlockMasks change_block(const TextBytes& bytes, const char* from, char* to) {
  BlockMasks masks;
  for (std::size_t i = 0; i < kTextBlock; ++i) {
    const char c = from[i];
    to[i] = bytes.lower && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    const auto byte = static_cast<unsigned char>(to[i]);
    const unsigned row = bytes.removed[(byte >> 7) * 16 + (byte & 15)];
    masks.spaces |= std::uint64_t{is_space(to[i])} << i;
    masks.removed |= std::uint64_t{(row >> (byte >> 4 & 7)) & 1} << i;
  }
  return masks;
}
#else
using Bytes = hn::CappedTag<std::uint8_t, kTextBlock>;

HWY_INLINE BlockMasks change_block(const TextBytes& bytes, const char* from, char* to) {
  const Bytes d;
  const std::size_t lanes = hn::Lanes(d);
  const auto low_rows = hn::LoadDup128(d, bytes.removed.data());
  const auto high_rows = hn::LoadDup128(d, bytes.removed.data() + 16);
  alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                         1, 2, 4, 8, 16, 32, 64, 128};
  const auto bits = hn::LoadDup128(d, kBits);
  const auto first_letter = hn::Set(d, 'A'), letters = hn::Set(d, bytes.lower ? 26 : 0);
  // Stores of bits may write eight bytes.
  std::uint8_t spaces[16] = {}, removed[16] = {};
  for (std::size_t i = 0; i < kTextBlock; i += lanes) {
    auto v = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from) + i);
    v = hn::Or(v, hn::IfThenElseZero(hn::Lt(hn::Sub(v, first_letter), letters), hn::Set(d, 0x20)));
    hn::StoreU(v, d, reinterpret_cast<std::uint8_t*>(to) + i);
    const auto is_blank =
        hn::Or(hn::Eq(v, hn::Set(d, ' ')), hn::Lt(hn::Sub(v, hn::Set(d, '\t')), hn::Set(d, 5)));
    hn::StoreMaskBits(d, is_blank, spaces + i / 8);
    const auto high = hn::ShiftRight<4>(v), low = hn::And(v, hn::Set(d, 15));
    const auto row =
        hn::IfThenElse(hn::Lt(high, hn::Set(d, 8)), hn::TableLookupBytes(low_rows, low),
                       hn::TableLookupBytes(high_rows, low));
    hn::StoreMaskBits(d, hn::TestBit(row, hn::TableLookupBytes(bits, high)), removed + i / 8);
  }
  BlockMasks masks;
  std::memcpy(&masks.spaces, spaces, sizeof masks.spaces);
  std::memcpy(&masks.removed, removed, sizeof masks.removed);
  return masks;
}
#endif

void Change(const TextBytes& bytes, const char* text, std::size_t size, char* to,
            BlockMasks* masks) {
  std::size_t i = 0;
  for (; i + kTextBlock <= size; i += kTextBlock) *masks++ = change_block(bytes, text + i, to + i);
  if (i == size) return;
  char last[kTextBlock];
  std::fill(std::copy(text + i, text + size, last), last + kTextBlock, ' ');
  *masks = change_block(bytes, last, to + i);
}

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(Change);

TextBytes::TextBytes(bool small_letters, const std::optional<ByteClass>& removed_bytes)
    : lower(small_letters) {
  for (std::size_t byte = 0; removed_bytes && byte < removed_bytes->size(); ++byte) {
    if (!(*removed_bytes)[byte]) continue;
    const std::size_t high = byte / 16, low = byte % 16;
    std::uint8_t& row = removed[16 * (high / 8) + low];
    row = static_cast<std::uint8_t>(row | 1u << high % 8);
  }
}

void change_text(const TextBytes& bytes, const char* text, std::size_t size, char* to,
                 BlockMasks* masks) {
  HWY_DYNAMIC_DISPATCH(Change)(bytes, text, size, to, masks);
}

}  // namespace tandem::cpu
#endif
