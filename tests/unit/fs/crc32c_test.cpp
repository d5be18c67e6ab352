#include "tandem/fs/crc32c.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace tandem::fs {
namespace {

TEST(Crc32c, OfKnownBytes) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32c, OfPiecesIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const std::string_view all = text;
  for (const std::size_t cut : {0, 1, 3, 8, 500, 999, 1000})
    EXPECT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), crc32c(all)) << cut;
}

TEST(Crc32c, IsJoinedFromThoseOfPieces) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  const std::string_view all = text;
  for (const std::size_t cut : {0, 1, 3, 8, 999, 4096, 4999, 5000}) {
    const std::string_view second = all.substr(cut);
    EXPECT_EQ(crc32c_joined(crc32c(all.substr(0, cut)), crc32c(second), second.size()), crc32c(all))
        << cut;
  }
}

TEST(Crc32c, StoredFormAndBack) {
  EXPECT_EQ(mask_crc32c(crc32c("")), 0xa282ead8u);
  EXPECT_EQ(mask_crc32c(0xe3069283u), 0xc78ab0e5u);
  for (const std::uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu})
    EXPECT_EQ(unmask_crc32c(mask_crc32c(crc)), crc);
}

}  // namespace
}  // namespace tandem::fs
