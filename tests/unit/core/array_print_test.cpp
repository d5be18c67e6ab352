#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tandem/core/array.h"
#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

namespace tandem {
namespace {

template <class T>
Array counting(const Shape& shape, T step) {
  Array a(dtype_of<T>, shape);
  for (std::int64_t i = 0; i < a.num_elements(); ++i) a.data<T>()[i] = static_cast<T>(i) * step;
  return a;
}

// Element i is bit i.
Array bools(const Shape& shape, unsigned bits) {
  Array a(boolean, shape);
  for (std::int64_t i = 0; i < a.num_elements(); ++i) a.data<bool>()[i] = (bits >> i & 1) != 0;
  return a;
}

struct Case {
  const char* name;
  Array array;
  const char* text;
};

// The texts are what print() of NumPy 2.4 shows for the same arrays.
TEST(ArrayPrint, IsNumPys) {
  const Case cases[] = {
      {"OneFloat", Array::vector<float>({1}), "[1.]"},
      {"Fractions", Array::vector<float>({1.5, -2.25, 100, 0.001f}),
       "[ 1.50e+00 -2.25e+00  1.00e+02  1.00e-03]"},
      {"Shortest", Array::vector<float>({0.1f, 0.2f, 1.0f / 3}),
       "[0.1        0.2        0.33333334]"},
      {"EightDigits", Array::vector<double>({0.1, 0.2, 1.0 / 3}),
       "[0.1        0.2        0.33333333]"},
      {"LargeFloats", Array::vector<float>({1234567, 1}), "[1.234567e+06 1.000000e+00]"},
      {"LargeDoubles", Array::vector<double>({12345678, 99999999}), "[12345678. 99999999.]"},
      {"Exponents", Array::vector<double>({1e-10, 2.5, 1e100}), "[1.0e-010 2.5e+000 1.0e+100]"},
      {"HalfExponents", Array::vector<Half>({Half(0.1f), Half(1500.0f)}), "[1.0e-01 1.5e+03]"},
      {"Halves", Array::vector<Half>({Half(0.1f), Half(-2.5f), Half(7.0f)}), "[ 0.1 -2.5  7. ]"},
      {"NotFinite", Array::vector<float>({NAN, INFINITY, -INFINITY, 1.5f}),
       "[ nan  inf -inf  1.5]"},
      {"NothingFinite", Array::vector<float>({NAN, INFINITY}), "[nan inf]"},
      {"NegativeZero", Array::vector<float>({-0.0f, 0.0f, 1.0f}), "[-0.  0.  1.]"},
      {"ScalarFloat", Array::scalar(2.0f), "2.0"},
      {"ScalarThird", Array::scalar(1.0 / 3), "0.3333333333333333"},
      {"ScalarLarge", Array::scalar(1e6f), "1e+06"},
      {"ScalarHalf", Array::scalar(Half(2048.0f)), "2.048e+03"},
      {"ScalarNan", Array::scalar(-NAN), "nan"},
      {"ScalarInt", Array::scalar<std::int32_t>(-7), "-7"},
      {"ScalarBool", Array::scalar(true), "True"},
      {"ScalarComplex", Array::scalar(std::complex<float>(1, -2.5f)), "(1-2.5j)"},
      {"ScalarImaginary", Array::scalar(std::complex<double>(0, 2)), "2j"},
      {"Complex", Array::vector<std::complex<double>>({{1, 2}, {1.5, -3.25}, {NAN, INFINITY}}),
       "[1. +2.j   1.5-3.25j nan +infj]"},
      {"Ints", Array::vector<std::int64_t>({1, -20, 300}), "[  1 -20 300]"},
      {"Bytes", Array::vector<std::int8_t>({-128, 0, 127}), "[-128    0  127]"},
      {"Unsigned", Array::vector<std::uint64_t>({0, UINT64_MAX}),
       "[                   0 18446744073709551615]"},
      {"Bools", bools({2, 2}, 0b1101),
       "[[ True False]\n"
       " [ True  True]]"},
      {"AllTrue", bools({2}, 0b11), "[ True  True]"},
      {"Strings", Array::vector<std::string>({"a", "it's", "\n\xff\\", "a'\"b"}),
       "[b'a' b\"it's\" b'\\n\\xff\\\\' b'a\\'\"b']"},
      {"Matrix", counting<float>({2, 3}, 0.5f),
       "[[0.  0.5 1. ]\n"
       " [1.5 2.  2.5]]"},
      {"Cube", counting<std::int32_t>({2, 2, 3}, 1),
       "[[[ 0  1  2]\n"
       "  [ 3  4  5]]\n"
       "\n"
       " [[ 6  7  8]\n"
       "  [ 9 10 11]]]"},
      {"FourAxes", counting<std::int32_t>({2, 1, 2, 2}, 1),
       "[[[[0 1]\n"
       "   [2 3]]]\n"
       "\n"
       "\n"
       " [[[4 5]\n"
       "   [6 7]]]]"},
      {"Wrapped", counting<std::int32_t>({30}, 1000),
       "[    0  1000  2000  3000  4000  5000  6000  7000  8000  9000 10000 11000\n"
       " 12000 13000 14000 15000 16000 17000 18000 19000 20000 21000 22000 23000\n"
       " 24000 25000 26000 27000 28000 29000]"},
      {"WrappedRows", counting<float>({2, 14}, 0.25f),
       "[[0.   0.25 0.5  0.75 1.   1.25 1.5  1.75 2.   2.25 2.5  2.75 3.   3.25]\n"
       " [3.5  3.75 4.   4.25 4.5  4.75 5.   5.25 5.5  5.75 6.   6.25 6.5  6.75]]"},
      {"Long", counting<std::int64_t>({1001}, 1), "[   0    1    2 ...  998  999 1000]"},
      {"LongFloats", counting<float>({2000}, 0.125f),
       "[0.00000e+00 1.25000e-01 2.50000e-01 ... 2.49625e+02 2.49750e+02\n"
       " 2.49875e+02]"},
      {"LongRows", counting<std::int32_t>({40, 50}, 1),
       "[[   0    1    2 ...   47   48   49]\n"
       " [  50   51   52 ...   97   98   99]\n"
       " [ 100  101  102 ...  147  148  149]\n"
       " ...\n"
       " [1850 1851 1852 ... 1897 1898 1899]\n"
       " [1900 1901 1902 ... 1947 1948 1949]\n"
       " [1950 1951 1952 ... 1997 1998 1999]]"},
      {"LongInner", counting<std::int32_t>({2, 600}, 1),
       "[[   0    1    2 ...  597  598  599]\n"
       " [ 600  601  602 ... 1197 1198 1199]]"},
      {"LongCube", counting<double>({8, 8, 20}, 0.5),
       "[[[0.000e+00 5.000e-01 1.000e+00 ... 8.500e+00 9.000e+00 9.500e+00]\n"
       "  [1.000e+01 1.050e+01 1.100e+01 ... 1.850e+01 1.900e+01 1.950e+01]\n"
       "  [2.000e+01 2.050e+01 2.100e+01 ... 2.850e+01 2.900e+01 2.950e+01]\n"
       "  ...\n"
       "  [5.000e+01 5.050e+01 5.100e+01 ... 5.850e+01 5.900e+01 5.950e+01]\n"
       "  [6.000e+01 6.050e+01 6.100e+01 ... 6.850e+01 6.900e+01 6.950e+01]\n"
       "  [7.000e+01 7.050e+01 7.100e+01 ... 7.850e+01 7.900e+01 7.950e+01]]\n"
       "\n"
       " [[8.000e+01 8.050e+01 8.100e+01 ... 8.850e+01 8.900e+01 8.950e+01]\n"
       "  [9.000e+01 9.050e+01 9.100e+01 ... 9.850e+01 9.900e+01 9.950e+01]\n"
       "  [1.000e+02 1.005e+02 1.010e+02 ... 1.085e+02 1.090e+02 1.095e+02]\n"
       "  ...\n"
       "  [1.300e+02 1.305e+02 1.310e+02 ... 1.385e+02 1.390e+02 1.395e+02]\n"
       "  [1.400e+02 1.405e+02 1.410e+02 ... 1.485e+02 1.490e+02 1.495e+02]\n"
       "  [1.500e+02 1.505e+02 1.510e+02 ... 1.585e+02 1.590e+02 1.595e+02]]\n"
       "\n"
       " [[1.600e+02 1.605e+02 1.610e+02 ... 1.685e+02 1.690e+02 1.695e+02]\n"
       "  [1.700e+02 1.705e+02 1.710e+02 ... 1.785e+02 1.790e+02 1.795e+02]\n"
       "  [1.800e+02 1.805e+02 1.810e+02 ... 1.885e+02 1.890e+02 1.895e+02]\n"
       "  ...\n"
       "  [2.100e+02 2.105e+02 2.110e+02 ... 2.185e+02 2.190e+02 2.195e+02]\n"
       "  [2.200e+02 2.205e+02 2.210e+02 ... 2.285e+02 2.290e+02 2.295e+02]\n"
       "  [2.300e+02 2.305e+02 2.310e+02 ... 2.385e+02 2.390e+02 2.395e+02]]\n"
       "\n"
       " ...\n"
       "\n"
       " [[4.000e+02 4.005e+02 4.010e+02 ... 4.085e+02 4.090e+02 4.095e+02]\n"
       "  [4.100e+02 4.105e+02 4.110e+02 ... 4.185e+02 4.190e+02 4.195e+02]\n"
       "  [4.200e+02 4.205e+02 4.210e+02 ... 4.285e+02 4.290e+02 4.295e+02]\n"
       "  ...\n"
       "  [4.500e+02 4.505e+02 4.510e+02 ... 4.585e+02 4.590e+02 4.595e+02]\n"
       "  [4.600e+02 4.605e+02 4.610e+02 ... 4.685e+02 4.690e+02 4.695e+02]\n"
       "  [4.700e+02 4.705e+02 4.710e+02 ... 4.785e+02 4.790e+02 4.795e+02]]\n"
       "\n"
       " [[4.800e+02 4.805e+02 4.810e+02 ... 4.885e+02 4.890e+02 4.895e+02]\n"
       "  [4.900e+02 4.905e+02 4.910e+02 ... 4.985e+02 4.990e+02 4.995e+02]\n"
       "  [5.000e+02 5.005e+02 5.010e+02 ... 5.085e+02 5.090e+02 5.095e+02]\n"
       "  ...\n"
       "  [5.300e+02 5.305e+02 5.310e+02 ... 5.385e+02 5.390e+02 5.395e+02]\n"
       "  [5.400e+02 5.405e+02 5.410e+02 ... 5.485e+02 5.490e+02 5.495e+02]\n"
       "  [5.500e+02 5.505e+02 5.510e+02 ... 5.585e+02 5.590e+02 5.595e+02]]\n"
       "\n"
       " [[5.600e+02 5.605e+02 5.610e+02 ... 5.685e+02 5.690e+02 5.695e+02]\n"
       "  [5.700e+02 5.705e+02 5.710e+02 ... 5.785e+02 5.790e+02 5.795e+02]\n"
       "  [5.800e+02 5.805e+02 5.810e+02 ... 5.885e+02 5.890e+02 5.895e+02]\n"
       "  ...\n"
       "  [6.100e+02 6.105e+02 6.110e+02 ... 6.185e+02 6.190e+02 6.195e+02]\n"
       "  [6.200e+02 6.205e+02 6.210e+02 ... 6.285e+02 6.290e+02 6.295e+02]\n"
       "  [6.300e+02 6.305e+02 6.310e+02 ... 6.385e+02 6.390e+02 6.395e+02]]]"},
      {"Empty", Array(float32, {0}), "[]"},
      {"EmptyRows", Array(float32, {2, 0}), "[]"},
  };
  for (const Case& c : cases) EXPECT_EQ(c.array.to_string(), c.text) << c.name;
}

TEST(ArrayPrint, ShowsAThousandElementsInFull) {
  const std::string text = counting<std::int64_t>({1000, 1}, 0).to_string();
  EXPECT_EQ(text.find("..."), std::string::npos);
  EXPECT_EQ(text.substr(0, 10), "[[0]\n [0]\n");
}

TEST(ArrayPrint, ShowsWhatNumPyLacks) {
  EXPECT_EQ(Array().to_string(), "<no value>");
  EXPECT_EQ(Array::vector<BFloat16>({BFloat16(0.1f), BFloat16(300.0f)}).to_string(),
            "[1.e-01 3.e+02]");
  EXPECT_EQ(Array::vector<BFloat16>({BFloat16(0.1f), BFloat16(3.5f)}).to_string(), "[0.1 3.5]");
  EXPECT_EQ(Array(variant, {1}).to_string(), "[<empty variant>]");
  EXPECT_EQ(Array(resource, {}).to_string(), "<empty resource>");
  const auto info =
      std::make_shared<ResourceInfo>(ResourceInfo{"", "", "kernel", "Var", float32, {}});
  EXPECT_EQ(Array::scalar(ResourceHandle(info, nullptr)).to_string(), "<resource kernel>");
}

}  // namespace
}  // namespace tandem
