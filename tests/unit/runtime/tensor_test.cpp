#include "tandem/runtime/tensor.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

TEST(Tensor, LiteralsHaveTheDtypesThatTheManualPromises) {
  EXPECT_EQ(Tensor({1, 2}).dtype(), int32);
  EXPECT_EQ(Tensor({1.0, 2.0}).dtype(), float32);
  EXPECT_EQ(Tensor({1.0f}).dtype(), float32);
  EXPECT_EQ(Tensor(true).dtype(), boolean);
  EXPECT_EQ(Tensor(std::int64_t{7}).dtype(), int64);
  EXPECT_EQ(Tensor("text").dtype(), string);
  EXPECT_EQ((Tensor{{1.0, 2.0}, {3.0, 4.0}}.shape()), (Shape{2, 2}));
  EXPECT_EQ(tensor<double>({1, 2, 3}).dtype(), float64);
}

TEST(Tensor, LiteralsHaveAsManyDimensionsAsBraces) {
  EXPECT_EQ((Tensor{{1.0}, {2.0}, {3.0}}.shape()), (Shape{3, 1}));
  EXPECT_EQ((Tensor({{1}, {2}}).shape()), (Shape{2, 1}));
  EXPECT_EQ((Tensor{{"a"}, {"b"}}.shape()), (Shape{2, 1}));
  EXPECT_EQ((Tensor{{true}, {false}}.shape()), (Shape{2, 1}));
  EXPECT_EQ((Tensor{{{1.0f}, {2.0f}}}.shape()), (Shape{1, 2, 1}));
  EXPECT_EQ((Tensor{{1.0, 2.0}}.shape()), (Shape{1, 2}));
  EXPECT_EQ((Tensor{1.0}.shape()), (Shape{1}));
}

template <class... A>
concept HasBlocksOfRows = requires(A... a) {
  Tensor{{{a}...}};
};
template <class... A>
concept HasFourBraces = requires(A... a) {
  Tensor{{{{a...}}}};
};
template <class... A>
concept TakesArguments = requires(A... a) {
  Tensor(a...);
};

TEST(Tensor, LiteralsOfSeveralTypesTakeTheWidest) {
  const float x = 0.5f;
  const Tensor floats{1, x, 2.5};
  EXPECT_EQ(floats.to_vector<float>(), (std::vector<float>{1, 0.5f, 2.5f}));
  const Tensor longs{1, std::int64_t{1} << 40, std::int16_t{3}};
  EXPECT_EQ(longs.to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1, std::int64_t{1} << 40, 3}));
  EXPECT_EQ((Tensor{1, std::int16_t{2}, true}.dtype()), int32);
  const std::size_t n = 4, m = 5;
  EXPECT_EQ((Tensor{n}.dtype()), int64);
  EXPECT_EQ((Tensor{n, m}.to_vector<std::int64_t>()), (std::vector<std::int64_t>{4, 5}));
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ((Tensor{kMax, 0.5}.to_vector<float>()), (std::vector<float>{0x1p64f, 0.5f}));
  EXPECT_THROW((Tensor{kMax, 1}), InvalidArgumentError);
  constexpr auto kLongest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Tensor{kLongest, 1}.to_vector<std::int64_t>()),
            (std::vector{kLongest, std::int64_t{1}}));
  EXPECT_EQ(Tensor({1, 2.5}).to_vector<float>(), (std::vector<float>{1, 2.5f}));
  static_assert(HasBlocksOfRows<int, int> && !HasBlocksOfRows<int, double>,
                "blocks of single numbers are not taken for rows");
  static_assert(!HasFourBraces<int> && !HasFourBraces<int, double>,
                "four braces are not taken for three");
  static_assert(!TakesArguments<int, double>, "arguments are not taken for a row");
}

TEST(Tensor, LiteralsOfSeveralTypesHaveAsManyDimensionsAsBraces) {
  const std::size_t n = 4, m = 5;
  EXPECT_EQ((Tensor{{n}}.shape()), (Shape{1, 1}));
  EXPECT_EQ((Tensor{{n, m}}.shape()), (Shape{1, 2}));
  EXPECT_EQ((Tensor{{n}, {m}}.to_string()),
            (Tensor{{std::int64_t{4}}, {std::int64_t{5}}}).to_string());
  EXPECT_EQ((Tensor{{n}, {1}}.shape()), (Shape{2, 1}));
  EXPECT_EQ((Tensor{{1}, {2.5}}.to_string()), (Tensor{{1.0}, {2.5}}).to_string());
  EXPECT_EQ((Tensor{{1, 2.5}, {n, 3}}.to_string()), (Tensor{{1.0, 2.5}, {4.0, 3.0}}).to_string());
  EXPECT_EQ((Tensor{{{n}}}.shape()), (Shape{1, 1, 1}));
  EXPECT_EQ((Tensor{{{1, 2.5}}}.shape()), (Shape{1, 1, 2}));
  EXPECT_THROW((Tensor{{1, 2.5}, {3}}), InvalidArgumentError);
}

// A pointer would be taken for true.
static_assert(!std::is_constructible_v<Tensor, float*>);
static_assert(!std::is_constructible_v<Tensor, const float*>);
static_assert(!std::is_constructible_v<Tensor, void*>);
static_assert(!std::is_constructible_v<Tensor, std::nullptr_t>);
static_assert(std::is_convertible_v<char*, Tensor>);

TEST(Tensor, SizesAreLong) {
  EXPECT_EQ(Tensor(std::size_t{7}).dtype(), int64);
  EXPECT_EQ(Tensor(7u).item<std::int64_t>(), 7);
  EXPECT_EQ(Tensor(-7LL).item<std::int64_t>(), -7);
  EXPECT_EQ(Tensor(short{7}).dtype(), int32);
  EXPECT_THROW(static_cast<void>(Tensor(std::numeric_limits<std::uint64_t>::max())),
               InvalidArgumentError);
}

TEST(Tensor, WhatATemporaryShowsStaysThere) {
  const auto made = [] { return Tensor::from(std::vector<float>(1000, 2), {10, 100}); };
  float sum = 0;
  for (const float value : made().data<float>()) sum += value;
  EXPECT_EQ(sum, 2000);
  const Shape& shape = made().shape();
  const Array& array = made().array();
  EXPECT_EQ(shape, (Shape{10, 100}));
  EXPECT_EQ(array.values<float>()[999], 2);
}

TEST(Tensor, ReadsElements) {
  const Tensor t{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  EXPECT_EQ(t.at<float>({1, 2}), 6.0f);
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tensor(2.5).item<float>(), 2.5f);
}

TEST(Tensor, RowsOfUnequalLengthAreRefused) {
  try {
    Tensor t{{1, 2}, {3}};
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_NE(std::string(e.what()).find("equal lengths"), std::string::npos) << e.what();
  }
}

TEST(Tensor, ReadingWithTheWrongTypeSaysWhichAndWhatToDo) {
  const Tensor t{1, 2};
  try {
    t.to_vector<float>();
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_NE(std::string(e.what()).find("int32 was read as float"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("td::cast"), std::string::npos) << e.what();
  }
  EXPECT_THROW(t.item<std::int32_t>(), InvalidArgumentError);
  EXPECT_THROW(t.at<std::int32_t>({2}), InvalidArgumentError);
  EXPECT_THROW(t.at<std::int32_t>({0, 0}), InvalidArgumentError);
}

TEST(Tensor, UndefinedTensorsExplainThemselves) {
  const Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_THROW(t.dtype(), FailedPreconditionError);
  EXPECT_THROW(t.array(), FailedPreconditionError);
  EXPECT_EQ(t.to_string(), "<undefined>");
}

TEST(Tensor, OutsideMemoryIsUsedWithoutACopyAndReleasedOnce) {
  float memory[3] = {1, 2, 3};
  int released = 0;
  {
    Tensor t = Tensor::wrap(memory, float32, {3}, [&] { ++released; });
    const Tensor copy = t;
    EXPECT_EQ(copy.data<float>().data(), memory);
    t = Tensor();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Tensor, ConditionsAreScalars) {
  EXPECT_TRUE(static_cast<bool>(Tensor(true)));
  EXPECT_FALSE(static_cast<bool>(Tensor(0.0)));
  EXPECT_THROW(static_cast<void>(static_cast<bool>(Tensor({true, false}))), InvalidArgumentError);
}

TEST(Tensor, SizesThatOverflowAreRefused) {
  EXPECT_THROW(Tensor::wrap(nullptr, float32, {1}), InvalidArgumentError);
  EXPECT_THROW((Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}), InvalidArgumentError);
  EXPECT_THROW((Array(float32, Shape{std::int64_t{1} << 61})), Error);
  EXPECT_THROW((Array(float32, Shape{std::int64_t{1} << 45})), ResourceExhaustedError);
}

}  // namespace
}  // namespace tandem
