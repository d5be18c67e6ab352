// The comparison itself: a test whose yardstick cannot fail would pass anything.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/reference/case.h"
#include "tests/reference/value.h"

namespace reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Value floats(const std::vector<double>& values, const std::string& dtype = "float") {
  return from_numbers(dtype, {static_cast<std::int64_t>(values.size())},
                      {values.begin(), values.end()});
}

Value ints(const std::vector<std::int64_t>& values) {
  Value value{"int64", {static_cast<std::int64_t>(values.size())}, "", {}};
  value.bytes.resize(values.size() * sizeof(std::int64_t));
  std::memcpy(value.bytes.data(), values.data(), value.bytes.size());
  return value;
}

void write_gzip(const std::filesystem::path& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(Decode, ReadsLittleEndianElements) {
  const Value value =
      decode({{"dtype", "float"}, {"shape", {2}}, {"data", "AACAPwAAAMA="}});  // 1, -2
  EXPECT_EQ(value.type(), "float[2]");
  EXPECT_EQ(numbers(value)[0], 1.0);
  EXPECT_EQ(numbers(value)[1], -2.0);
  const Value half =
      decode({{"dtype", "half"}, {"shape", nlohmann::json::array()}, {"data", "AD4="}});
  EXPECT_EQ(numbers(half)[0], 1.5);
  const Value text = decode({{"dtype", "string"}, {"shape", {2}}, {"strings", {"YWI=", ""}}});
  EXPECT_EQ(text.strings, (std::vector<std::string>{"ab", ""}));
}

TEST(Decode, RefusesWhatContradictsItself) {
  EXPECT_THROW(decode({{"dtype", "float"}, {"shape", {3}}, {"data", "AACAPwAAAMA="}}),
               std::runtime_error);
  EXPECT_THROW(decode({{"dtype", "float"}, {"shape", {2}}, {"data", "!!!!"}}), std::runtime_error);
  EXPECT_THROW(decode({{"dtype", "string"}, {"shape", {2}}, {"strings", {"YWI="}}}),
               std::runtime_error);
}

TEST(Difference, SeesDtypeShapeAndValue) {
  const Tolerance tolerance{1e-3, 1e-3};
  EXPECT_EQ(difference(floats({1, 2}), floats({1.0005, 2}), tolerance), "");
  EXPECT_NE(difference(floats({1, 2}), floats({1, 2.01}), tolerance), "");
  EXPECT_NE(difference(floats({1}, "double"), floats({1}), tolerance), "");
  EXPECT_NE(difference(floats({1}), floats({1, 1}), tolerance), "");
  EXPECT_NE(difference(ints({1, 2}), ints({1, 3}), tolerance), "");
  const std::int64_t big = (std::int64_t{1} << 62) + 1;  // not a double
  EXPECT_NE(difference(ints({big}), ints({big - 1}), tolerance), "");
  Value a{"string", {1}, "", {"a"}}, b{"string", {1}, "", {"b"}};
  EXPECT_EQ(difference(a, a, tolerance), "");
  EXPECT_NE(difference(a, b, tolerance), "");
}

TEST(Difference, SpecialValuesAreOnlyEqualToThemselves) {
  const Tolerance wide{1, 1000};
  EXPECT_EQ(difference(floats({kNan, kInf, -kInf}), floats({kNan, kInf, -kInf}), wide), "");
  EXPECT_NE(difference(floats({1}), floats({kNan}), wide), "");
  EXPECT_NE(difference(floats({kNan}), floats({1}), wide), "");
  EXPECT_NE(difference(floats({kInf}), floats({-kInf}), wide), "");
  EXPECT_NE(difference(floats({3e38}), floats({kInf}), wide), "");
}

TEST(Difference, ExactMeansBitsAndUlpsAreCounted) {
  Tolerance exact;
  exact.exact = true;
  const float next = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(difference(floats({1, kNan}), floats({1, kNan}), exact), "");
  EXPECT_NE(difference(floats({next}), floats({1}), exact), "");
  EXPECT_NE(difference(floats({-0.0}), floats({0.0}), exact), "");
  Tolerance ulps;
  ulps.ulps = 2;
  const float third = std::nextafter(std::nextafter(next, 2.0f), 2.0f);
  EXPECT_EQ(difference(floats({next}), floats({1}), ulps), "");
  EXPECT_NE(difference(floats({third}), floats({1}), ulps), "");
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(difference(floats({tiny}), floats({-tiny}), ulps), "");  // either side of zero
}

TEST(Difference, SeesBothPartsOfComplexNumbers) {
  const Value want = from_numbers("complex64", {1}, {{1, 2}});
  EXPECT_EQ(difference(want, want, {1e-6, 1e-6}), "");
  EXPECT_NE(difference(from_numbers("complex64", {1}, {{1, 2.1}}), want, {1e-6, 1e-6}), "");
}

TEST(ReadCases, RefusesFilesThatAreCut) {
  const auto path = std::filesystem::temp_directory_path() / "tandem_records_test.jsonl.gz";
  const std::string record =
      R"({"id":"Neg-1","line":"Neg | float[1]","op":"Neg","attributes":{},"inferred":{},)"
      R"("inputs":[],"outputs":[]})";
  const std::string header = R"({"format":1,"family":"f","cases":2})";
  write_gzip(path, header + "\n" + record + "\n" + record + "\n");
  EXPECT_EQ(read_cases(path).size(), 2u);
  write_gzip(path, header + "\n" + record + "\n");
  EXPECT_THROW(read_cases(path), std::runtime_error);
  write_gzip(path, R"({"format":2,"family":"f","cases":0})");
  EXPECT_THROW(read_cases(path), std::runtime_error);
  std::filesystem::remove(path);
  EXPECT_THROW(read_cases(path), std::runtime_error);
}

}  // namespace
}  // namespace reference
