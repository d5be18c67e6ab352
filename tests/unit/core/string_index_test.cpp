#include "tandem/core/string_index.h"

#include <string>

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(StringIndex, NumbersStringsInTheirOrder) {
  StringIndex index;
  EXPECT_EQ(index.find("a"), StringIndex::kMissing);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5000; ++i) EXPECT_EQ(index.add(std::to_string(i)), i);
  }
  EXPECT_EQ(index.size(), 5000);
  EXPECT_EQ(index.find("4711"), 4711);
  EXPECT_EQ(index.at(4711), "4711");
  EXPECT_EQ(index.find("5000"), StringIndex::kMissing);
  EXPECT_EQ(index.find(""), StringIndex::kMissing);
  EXPECT_EQ(index.add(""), 5000);
  EXPECT_EQ(index.find(""), 5000);
}

}  // namespace
}  // namespace tandem
