#include "tandem/core/array.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/core/variant.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class E, class F>
std::string message(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

Array counting(const Shape& shape) {
  Array a(int32, shape);
  std::iota(a.data<std::int32_t>(), a.data<std::int32_t>() + a.num_elements(), 0);
  return a;
}

TEST(Array, IsEmptyByDefault) {
  const Array a;
  EXPECT_FALSE(a.valid());
  EXPECT_EQ(a.dtype(), DType::kInvalid);
  EXPECT_EQ(a.num_bytes(), 0u);
  EXPECT_FALSE(a.writable_in_place());
  EXPECT_TRUE(a == Array());
  EXPECT_FALSE(a.clone().valid());
}

TEST(Array, AllocatesAlignedMemory) {
  for (const std::int64_t size : {1, 3, 64, 1000, 100'000}) {
    const Array a(float32, {size});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.raw_data()) % 64, 0u) << size;
    EXPECT_EQ(a.num_bytes(), static_cast<std::size_t>(size) * 4);
    EXPECT_TRUE(a.writable_in_place());
  }
  EXPECT_EQ(Array::zeros(float32, {1000}).values<float>()[999], 0.0f);
  EXPECT_EQ(Array(DType::kInt32, {0}).num_elements(), 0);
  EXPECT_EQ(Array(ref_dtype(float32), {2}).dtype(), float32);
}

TEST(Array, RefusesWhatCannotBe) {
  EXPECT_THROW(Array(DType::kInvalid, {2}), InvalidArgumentError);
  EXPECT_THROW(Array(static_cast<DType>(77), {2}), InvalidArgumentError);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(message<InvalidArgumentError>([&] { Array(float64, {huge / 4}); }), HasSubstr("2^63"))
      << "bytes overflow";
  EXPECT_THAT(message<ResourceExhaustedError>([&] { Array(uint8, {huge}); }), HasSubstr("bytes"));
  EXPECT_THAT(message<ResourceExhaustedError>([&] { Array(float32, {huge / 8}); }),
              HasSubstr("Out of host memory"));
  EXPECT_THROW(Array(string, {huge / 64}), ResourceExhaustedError);
}

TEST(Array, IsMadeOfValues) {
  EXPECT_THAT(Array::vector<float>({1, 2}).values<float>(), ElementsAre(1, 2));
  EXPECT_EQ(Array::scalar(7).shape(), Shape{});
  const std::int32_t six[] = {1, 2, 3, 4, 5, 6};
  const Array a = Array::from(std::span<const std::int32_t>(six), {2, 3});
  EXPECT_EQ(a.to_string(), "[[1 2 3]\n [4 5 6]]");
  EXPECT_THAT(
      message<InvalidArgumentError>([&] { Array::from(std::span<const std::int32_t>(six), {4}); }),
      HasSubstr("6 values were given for shape [4] of 4 elements"));
  EXPECT_THAT(message<InvalidArgumentError>([&] { a.values<float>(); }),
              HasSubstr("dtype int32 was read as float"));
}

TEST(Array, SharesItsBufferWithViews) {
  const Array a = counting({4, 3});
  EXPECT_TRUE(a.writable_in_place());
  const Array flat = a.reshape({12}), rows = a.slice_outer(1, 3), none = a.slice_outer(4, 4);
  EXPECT_FALSE(a.writable_in_place());
  EXPECT_EQ(flat.raw_data(), a.raw_data());
  EXPECT_EQ(rows.data<std::int32_t>(), a.data<std::int32_t>() + 3);
  EXPECT_EQ(rows.to_string(), "[[3 4 5]\n [6 7 8]]");
  EXPECT_EQ(none.shape(), (Shape{0, 3}));
  EXPECT_EQ(rows.slice_outer(1, 2).reshape({3}).values<std::int32_t>()[0], 6);
  const Array copy = a.clone();
  EXPECT_NE(copy.raw_data(), a.raw_data());
  EXPECT_TRUE(copy == a);
  EXPECT_TRUE(copy.writable_in_place());
}

TEST(Array, RefusesViewsThatDoNotFit) {
  const Array a = counting({4, 3});
  EXPECT_THAT(message<InvalidArgumentError>([&] { a.reshape({5}); }),
              HasSubstr("Cannot reshape a value of shape [4,3] (12 elements) to [5] (5 elements)"));
  const std::pair<int, int> ranges[] = {{-1, 2}, {0, 5}, {3, 2}, {5, 5}};
  for (const auto& [begin, end] : ranges) {
    EXPECT_THROW(a.slice_outer(begin, end), InvalidArgumentError) << begin << ' ' << end;
  }
  EXPECT_THROW(Array::scalar(1).slice_outer(0, 0), InvalidArgumentError);
}

TEST(Array, OutlivesTheOneItWasCutFrom) {
  Array row;
  {
    const Array a = counting({100, 1000});
    row = a.slice_outer(99, 100);
  }
  EXPECT_EQ(row.values<std::int32_t>()[999], 99'999);
}

TEST(Array, WrapsOutsideMemory) {
  float outside[] = {1, 2, 3, 4, 5};
  int released = 0;
  {
    // Aligned to an element only.
    Array a = Array::wrap(outside + 1, float32, {2, 2}, [&] { ++released; });
    EXPECT_EQ(a.raw_data(), outside + 1);
    EXPECT_FALSE(a.writable_in_place()) << "others may look at it";
    const Array view = a.slice_outer(1, 2);
    a = Array();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(view.to_string(), "[[4. 5.]]");
  }
  EXPECT_EQ(released, 1);
  EXPECT_THROW(Array::wrap(nullptr, float32, {1}), InvalidArgumentError);
  EXPECT_EQ(Array::wrap(nullptr, float32, {0}).num_elements(), 0);
  EXPECT_THROW(Array::wrap(outside, string, {1}), InvalidArgumentError);
  EXPECT_THROW(Array::wrap(outside, DType::kInvalid, {1}), InvalidArgumentError);
}

TEST(Array, ComparesDtypeShapeAndElements) {
  const auto same = [](const Array& a, const Array& b) { return a == b; };
  EXPECT_TRUE(same(Array::vector<float>({0.0f}), Array::vector<float>({-0.0f})));
  EXPECT_FALSE(same(Array::vector<float>({NAN}), Array::vector<float>({NAN})));
  EXPECT_FALSE(same(Array::vector<float>({1}), Array::vector<double>({1})));
  EXPECT_FALSE(same(counting({2, 3}), counting({3, 2})));
  EXPECT_FALSE(same(Array::vector<Half>({Half(1.0f)}), Array::vector<Half>({Half(2.0f)})));
  EXPECT_TRUE(
      same(Array::vector<BFloat16>({BFloat16(1.0f)}), Array::vector<BFloat16>({BFloat16(1.0f)})));
  EXPECT_TRUE(same(Array::vector<std::string>({"a", ""}), Array::vector<std::string>({"a", ""})));
  EXPECT_FALSE(same(Array::vector<std::complex<float>>({{1, 2}}),
                    Array::vector<std::complex<float>>({{1, 3}})));
  EXPECT_TRUE(same(Array(int32, {0, 2}), Array(int32, {0, 2})));
}

struct Counted final : VariantValue {
  explicit Counted(int& count) : alive(count) { ++alive; }
  ~Counted() override { --alive; }
  std::string type_name() const override { return "Counted"; }
  int& alive;
};

TEST(Array, OwnsItsObjects) {
  int alive = 0;
  {
    Array variants(variant, {3});
    EXPECT_TRUE(variants.data<Variant>()[2].empty());
    variants.data<Variant>()[0] = Variant(make_ref<Counted>(alive));
    const Array copy = variants.clone();
    variants = Array();
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(copy.to_string(), "[<Counted> <empty variant> <empty variant>]");
    EXPECT_NE(copy.data<Variant>()[0].as<Counted>(), nullptr);
  }
  EXPECT_EQ(alive, 0);
  Array strings(string, {1000});
  strings.data<std::string>()[999] = std::string(1000, 'x');
  EXPECT_EQ(strings.clone().values<std::string>()[999].size(), 1000u);
}

TEST(HostMemory, IsUsedAgainAndCounted) {
  host_trim();
  const std::size_t before = host_memory_stats().current;
  const void* first = nullptr;
  {
    const Array a(uint8, {1 << 20});
    first = a.raw_data();
    EXPECT_GE(host_memory_stats().current, before + (1 << 20));
    EXPECT_GE(host_memory_stats().peak, before + (1 << 20));
  }
  EXPECT_EQ(host_memory_stats().current, before);
  if (host_memory_stats().cached > 0) {  // under sanitizers nothing is kept
    EXPECT_EQ(Array(uint8, {1 << 20}).raw_data(), first);
    host_trim();
    EXPECT_EQ(host_memory_stats().cached, 0u);
  }
}

}  // namespace
}  // namespace tandem
