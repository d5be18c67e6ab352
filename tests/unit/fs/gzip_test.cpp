#include "tandem/fs/gzip.h"

#include <string>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

constexpr std::size_t kLimit = std::size_t{1} << 26;

std::string varied(std::size_t size) {
  std::string text(size, '\0');
  unsigned state = 1;
  for (char& c : text) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 28);
  }
  return text;
}

TEST(Gzip, ComesBackAsItWas) {
  for (const std::size_t size : {0, 1, 1000, 65536, 65537, 3'000'000}) {
    const std::string content = varied(size);
    for (const int level : {1, 6, 9}) {
      EXPECT_EQ(gunzip(gzip(content, level), kLimit, "x"), content) << size;
    }
  }
  EXPECT_EQ(gzip("abc"), gzip("abc")) << "no time stamp";
  EXPECT_THROW(gzip("abc", 0), InvalidArgumentError);
  EXPECT_THROW(gzip("abc", 10), InvalidArgumentError);
}

TEST(Gunzip, TakesWhatOthersWrite) {
  // printf hello | gzip -n, and zlib.compress(b"hello") of Python.
  const std::string gz(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00"
      "\x00\x00",
      25);
  const std::string zlib("\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15", 13);
  EXPECT_EQ(gunzip(gz, kLimit, "x"), "hello");
  EXPECT_EQ(gunzip(zlib, kLimit, "x"), "hello");
  EXPECT_EQ(gunzip(gz + gz, kLimit, "x"), "hellohello") << "several members";
}

TEST(Gunzip, SeesDamageAtEveryPlace) {
  const std::string whole = gzip(varied(500));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(gunzip(whole.substr(0, size), kLimit, "x"), DataLossError) << size;
  }
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{2}, whole.size() / 2, whole.size() - 6}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THROW(gunzip(damaged, kLimit, "x"), DataLossError) << at;
  }
  EXPECT_THROW(gunzip(whole + "trailing", kLimit, "x"), DataLossError);
  try {
    gunzip("1,2,3\n", kLimit, "data.csv.gz");
    ADD_FAILURE();
  } catch (const DataLossError& error) {
    EXPECT_NE(std::string(error.what()).find("data.csv.gz: incorrect header check"),
              std::string::npos)
        << error.what();
  }
}

TEST(Gunzip, StopsAtItsLimit) {
  const std::string bomb = gzip(std::string(10'000'000, '0'));
  EXPECT_LT(bomb.size(), 20'000u);
  EXPECT_THROW(gunzip(bomb, 1'000'000, "x"), ResourceExhaustedError);
  EXPECT_EQ(gunzip(bomb, 10'000'000, "x").size(), 10'000'000u);
}

}  // namespace
}  // namespace tandem::fs
