// Functions that are calculated in vectors: every length of a tail, every kind of number, and the
// same value wherever an element lies.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
namespace {

template <class T>
std::vector<T> arguments() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           -T(0),
                           1,
                           -1,
                           2,
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::max(),
                           Limits::lowest(),
                           Limits::min(),
                           T(1048575.5),
                           T(-1048577.5),
                           T(1e15)};
  for (int i = -60; i <= 60; ++i) values.push_back(T(i) * T(0.17));
  return values;
}

template <class T>
bool same_kind(T got, T want) {
  if (std::isnan(want)) return std::isnan(got);
  return std::signbit(got) == std::signbit(want) && std::isinf(got) == std::isinf(want);
}

struct Function {
  const char* op;
  float (*of_float)(float);
  double (*of_double)(double);
};
const Function kFunctions[] = {
    {"Sin", std::sin, std::sin},       {"Cos", std::cos, std::cos},
    {"Tan", std::tan, std::tan},       {"Asin", std::asin, std::asin},
    {"Acos", std::acos, std::acos},    {"Atan", std::atan, std::atan},
    {"Sinh", std::sinh, std::sinh},    {"Cosh", std::cosh, std::cosh},
    {"Asinh", std::asinh, std::asinh}, {"Acosh", std::acosh, std::acosh},
    {"Atanh", std::atanh, std::atanh}, {"Erf", std::erf, std::erf},
};

// Kernels may take subnormal numbers for 0.
template <class T>
void expect_close(const std::string& op, T x, T got, T want) {
  EXPECT_TRUE(same_kind(got, want)) << op << "(" << x << ") is " << got << ", not " << want;
  if (!std::isfinite(want)) return;
  using Limits = std::numeric_limits<T>;
  EXPECT_LE(std::fabs(got - want), 6 * Limits::epsilon() * std::fabs(want) + Limits::min())
      << op << "(" << x << ") is " << got << ", not " << want;
}

TEST(VectorFunctions, AreThoseOfTheStandardLibrary) {
  for (const Function& f : kFunctions) {
    const auto floats = arguments<float>();
    const auto of_floats = raw_op(f.op, {Tensor::from(floats)})[0].to_vector<float>();
    for (std::size_t i = 0; i < floats.size(); ++i)
      expect_close(f.op, floats[i], of_floats[i], f.of_float(floats[i]));
    const auto doubles = arguments<double>();
    const auto of_doubles = raw_op(f.op, {Tensor::from(doubles)})[0].to_vector<double>();
    for (std::size_t i = 0; i < doubles.size(); ++i)
      expect_close(f.op, doubles[i], of_doubles[i], f.of_double(doubles[i]));
  }
}

TEST(VectorFunctions, ValuesDoNotDependOnTheLengthOfTheArray) {
  const auto all = arguments<float>();
  for (const char* op : {"Sin", "Tan", "Asin", "Atanh", "Lgamma", "Digamma", "Ndtri", "Erfinv",
                         "BesselI0e", "BesselI1", "Erfc"}) {
    const auto whole = raw_op(op, {Tensor::from(all)})[0].to_vector<float>();
    for (std::size_t n = 0; n < 36; ++n) {
      const std::vector<float> first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
      const auto part = raw_op(op, {Tensor::from(first)})[0].to_vector<float>();
      ASSERT_EQ(part.size(), n);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_TRUE(part[i] == whole[i] || (std::isnan(part[i]) && std::isnan(whole[i])))
            << op << "(" << all[i] << ") of " << n;
    }
  }
}

TEST(VectorFunctions, OfTwoArgumentsTakeAllPairs) {
  const auto all = arguments<float>();
  for (const float x : all) {
    const Tensor one(x), many = Tensor::from(all);
    const auto angles = raw_op("Atan2", {one, many})[0].to_vector<float>();
    const auto powers = raw_op("Pow", {one, many})[0].to_vector<float>();
    const auto of_many = raw_op("Pow", {many, one})[0].to_vector<float>();
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_close("Atan2", x, angles[i], std::atan2(x, all[i]));
      expect_close("Pow", x, powers[i], std::pow(x, all[i]));
      expect_close("Pow", all[i], of_many[i], std::pow(all[i], x));
    }
  }
}

// Bools that come from outside may hold any byte: all but 0 are true.
TEST(VectorFunctions, BoolsMayBeAnyByte) {
  for (std::int64_t n = 0; n < 140; n += 3) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n)), others(bytes);
    std::vector<std::int16_t> yes(bytes.size()), no(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(i % 3 == 0 ? 0 : i);
      others[i] = static_cast<std::uint8_t>(i % 5 == 0 ? 0 : 3 * i);
      yes[i] = static_cast<std::int16_t>(i);
      no[i] = static_cast<std::int16_t>(-1 - yes[i]);
    }
    const Tensor a = Tensor::wrap(bytes.data(), DType::kBool, Shape{n}, [] {});
    const Tensor b = Tensor::wrap(others.data(), DType::kBool, Shape{n}, [] {});
    const Tensor both = raw_op("LogicalAnd", {a, b})[0], either = raw_op("LogicalOr", {a, b})[0];
    const auto chosen =
        raw_op("SelectV2", {a, Tensor::from(yes), Tensor::from(no)})[0].to_vector<std::int16_t>();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_EQ(reinterpret_cast<const std::uint8_t*>(both.data<bool>().data())[i],
                bytes[i] && others[i]);
      ASSERT_EQ(reinterpret_cast<const std::uint8_t*>(either.data<bool>().data())[i],
                bytes[i] || others[i]);
      ASSERT_EQ(chosen[i], bytes[i] ? yes[i] : no[i]);
    }
  }
}

// Rows too short for vectors are repeated into longer ones.
TEST(VectorFunctions, ShortRowsAreBroadcast) {
  for (const std::int64_t row : {1, 2, 3, 5, 23, 24}) {
    const std::int64_t rows = 1500;
    std::vector<float> matrix, line, column;
    for (std::int64_t i = 0; i < rows * row; ++i) matrix.push_back(static_cast<float>(i));
    for (std::int64_t i = 0; i < row; ++i) line.push_back(static_cast<float>(i * i));
    for (std::int64_t i = 0; i < rows; ++i) column.push_back(static_cast<float>(i % 7));
    const Tensor m = Tensor::from(matrix, Shape{rows, row});
    const Tensor l = Tensor::from(line);
    const Tensor c = Tensor::from(column, Shape{rows, 1});
    const auto by_line = raw_op("Sub", {m, l})[0].to_vector<float>();
    const auto by_column = raw_op("Sub", {c, m})[0].to_vector<float>();
    const auto outer = raw_op("Sub", {l, c})[0].to_vector<float>();
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < row; ++j) {
        const auto k = static_cast<std::size_t>(i * row + j);
        const auto a = matrix[k], b = line[static_cast<std::size_t>(j)],
                   d = column[static_cast<std::size_t>(i)];
        ASSERT_EQ(by_line[k], a - b) << row;
        ASSERT_EQ(by_column[k], d - a) << row;
        ASSERT_EQ(outer[k], b - d) << row;
      }
    }
  }
}

}  // namespace
}  // namespace tandem
