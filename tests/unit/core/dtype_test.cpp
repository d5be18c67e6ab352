#include "tandem/core/dtype.h"

#include <sstream>

#include <gtest/gtest.h>

namespace tandem {
namespace {

// Number, name and size; the numbers and names are those of tensorflow.DataType.
struct Row {
  int number;
  const char* name;
  std::size_t size;
};
constexpr Row kRows[] = {
    {1, "float", 4},
    {2, "double", 8},
    {3, "int32", 4},
    {4, "uint8", 1},
    {5, "int16", 2},
    {6, "int8", 1},
    {8, "complex64", 8},
    {9, "int64", 8},
    {10, "bool", 1},
    {11, "qint8", 1},
    {12, "quint8", 1},
    {13, "qint32", 4},
    {14, "bfloat16", 2},
    {15, "qint16", 2},
    {16, "quint16", 2},
    {17, "uint16", 2},
    {18, "complex128", 16},
    {19, "half", 2},
    {22, "uint32", 4},
    {23, "uint64", 8},
    {24, "float8_e5m2", 1},
    {25, "float8_e4m3fn", 1},
    {26, "float8_e4m3fnuz", 1},
    {27, "float8_e4m3b11fnuz", 1},
    {28, "float8_e5m2fnuz", 1},
    {29, "int4", 1},
    {30, "uint4", 1},
    {31, "int2", 1},
    {32, "uint2", 1},
};

TEST(DType, HasTensorFlowsNumbersAndNames) {
  for (const Row& row : kRows) {
    const auto t = static_cast<DType>(row.number);
    EXPECT_EQ(dtype_name(t), row.name);
    EXPECT_EQ(dtype_size(t), row.size) << row.name;
    EXPECT_EQ(parse_dtype(row.name), t);
    EXPECT_EQ(parse_dtype(std::string(row.name) + "_ref"), static_cast<DType>(row.number + 100));
  }
  EXPECT_EQ(static_cast<int>(DType::kString), 7);
  EXPECT_EQ(static_cast<int>(DType::kResource), 20);
  EXPECT_EQ(static_cast<int>(DType::kVariant), 21);
  EXPECT_EQ(dtype_name(DType::kString), "string");
  EXPECT_EQ(dtype_name(DType::kResource), "resource");
  EXPECT_EQ(dtype_name(DType::kVariant), "variant");
}

TEST(DType, ReferencesAreAHundredMore) {
  EXPECT_EQ(ref_dtype(DType::kFloat), static_cast<DType>(101));
  EXPECT_EQ(ref_dtype(static_cast<DType>(101)), static_cast<DType>(101));
  EXPECT_EQ(base_dtype(static_cast<DType>(101)), DType::kFloat);
  EXPECT_TRUE(is_ref(static_cast<DType>(101)));
  EXPECT_FALSE(is_ref(DType::kFloat));
  EXPECT_EQ(dtype_name(static_cast<DType>(103)), "int32_ref");
  EXPECT_EQ(dtype_size(static_cast<DType>(103)), 4u);
}

TEST(DType, ParsesOtherSpellings) {
  EXPECT_EQ(parse_dtype("float32"), DType::kFloat);
  EXPECT_EQ(parse_dtype("float64"), DType::kDouble);
  EXPECT_EQ(parse_dtype("float16"), DType::kHalf);
  EXPECT_EQ(parse_dtype("DT_BFLOAT16"), DType::kBFloat16);
  EXPECT_EQ(parse_dtype("Int32"), DType::kInt32);
  EXPECT_EQ(parse_dtype("bool"), DType::kBool);
  for (const char* unknown : {"", "int", "float128", "invalid", "DT_", "_ref", "float "}) {
    EXPECT_EQ(parse_dtype(unknown), std::nullopt) << unknown;
  }
}

TEST(DType, UnknownNumbersAreHarmless) {
  for (const int number : {-1, 0, 33, 100, 133, 1000}) {
    EXPECT_EQ(dtype_size(static_cast<DType>(number)), 0u) << number;
  }
  EXPECT_EQ(dtype_name(static_cast<DType>(99)), "dtype(99)");
  std::ostringstream out;
  out << DType::kHalf;
  EXPECT_EQ(out.str(), "half");
}

TEST(DType, FamiliesAreDisjointAndComplete) {
  for (const Row& row : kRows) {
    const auto t = static_cast<DType>(row.number);
    const int families = int{is_floating(t)} + int{is_complex(t)} + int{is_signed_integer(t)} +
                         int{is_unsigned_integer(t)};
    EXPECT_LE(families, 1) << row.name;
    EXPECT_EQ(kNumberTypes.contains(t), families == 1) << row.name;
    EXPECT_EQ(kPodTypes.contains(t), families == 1 || t == DType::kBool) << row.name;
    EXPECT_FALSE(is_object(t)) << row.name;
  }
}

TEST(DTypeSet, HoldsTypesAndTheirReferences) {
  constexpr DTypeSet set{DType::kFloat, DType::kVariant};
  static_assert(set.contains(DType::kFloat) && !set.contains(DType::kDouble));
  EXPECT_TRUE(set.contains(DType::kVariant));
  EXPECT_TRUE(set.contains(ref_dtype(DType::kFloat)));
  EXPECT_TRUE(DTypeSet{}.empty());
  EXPECT_TRUE((set | DTypeSet{DType::kUint2}).contains(DType::kUint2));
}

TEST(DTypeOf, NamesElementTypes) {
  EXPECT_EQ(dtype_of<float>, DType::kFloat);
  EXPECT_EQ(dtype_of<const std::int64_t>, DType::kInt64);
  EXPECT_EQ(dtype_of<std::complex<double>>, DType::kComplex128);
  EXPECT_EQ(dtype_of<Half>, DType::kHalf);
  EXPECT_EQ(dtype_of<std::string>, DType::kString);
}

}  // namespace
}  // namespace tandem
