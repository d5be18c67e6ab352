// A map that runs on whole batches, or writes into the rows of its batch, gives the bytes that it
// gives element by element.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/tandem.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::StartsWith;

constexpr std::int64_t kElements = 97;  // their batches end in a part of one

constexpr DType kNumbers[] = {float32, float64, float16, bfloat16, int8,   int16,
                              int32,   int64,   uint8,   uint16,   uint32, uint64};

double special(std::int64_t i) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr std::array<double, 29> kValues = {
      0.0,    -0.0,    1.0,   -1.0,   kNaN,  kInf, -kInf, 0.5,   -0.5,    1.5,
      2.5,    -2.5,    255.0, -255.0, 1e-40, 3e38, -3e38, 65504, 1e-310,  1e300,
      -127.0, 1.0 / 3, -7e-8, 1e10,   -1e10, 3.0,  -kNaN, 2e-5,  123456.7};
  return kValues[static_cast<std::size_t>(i) % kValues.size()];
}

// Every pair of special values, sooner or later.
Tensor values(DType dtype, const Shape& row, std::int64_t step) {
  std::vector<std::int64_t> dims{kElements};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  const Shape shape{std::span<const std::int64_t>(dims)};
  if (!is_floating(dtype)) {
    Array bits(DType::kUint64, shape);
    for (std::int64_t i = 0; i < bits.num_elements(); ++i) {
      const auto n = static_cast<std::uint64_t>(i / step + i * step);
      bits.data<std::uint64_t>()[i] = n % 7 == 0 ? n : n * 0x9e37'79b9'7f4a'7c15u;
    }
    return cast(Tensor(bits), dtype);
  }
  Array doubles(DType::kDouble, shape);
  for (std::int64_t i = 0; i < doubles.num_elements(); ++i) {
    doubles.data<double>()[i] = special(i / step + i * step);
  }
  return cast(Tensor(doubles), dtype);
}

// With all NaNs alike, or as they are.
std::string bytes(const Dataset& dataset, bool one_nan) {
  std::string all;
  for (const Element& element : dataset) {
    for (const Tensor& tensor : element) {
      const Array& array = tensor.array();
      const std::size_t size = dtype_size(array.dtype());
      std::string own(static_cast<const char*>(array.raw_data()), array.num_bytes());
      if (one_nan && is_floating(array.dtype())) {
        const std::vector<double> doubles = cast(tensor, float64).to_vector<double>();
        for (std::size_t i = 0; i < doubles.size(); ++i) {
          if (std::isnan(doubles[i])) own.replace(i * size, size, size, '\xff');
        }
      }
      all += own;
    }
  }
  return all;
}

Tensor op(std::string_view name, const std::vector<Tensor>& inputs) {
  const OpDef* def = Runtime::current().ops().find(std::string(name));
  if (!def) throw NotFoundError("no op " + std::string(name));
  return call(*def, inputs, AttrMap()).front();
}

using Function = std::function<Tensor(Tensor, Tensor)>;

// False if the op has no such dtype.
bool traces(const Function& f, DType dtype) {
  try {
    f(cast(Tensor(1.0f), dtype), cast(Tensor(1.0f), dtype));
    return true;
  } catch (const Error&) {
    return false;
  }
}

void expect_equal_bytes(const Function& f, DType dtype, std::string_view first_stage,
                        bool one_nan) {
  for (const Shape& row : {Shape{}, Shape{1}, Shape{3}, Shape{2, 17}}) {
    const Dataset pairs = from_tensor_slices({values(dtype, row, 1), values(dtype, row, 13)});
    const auto map = [&](Tensor x, Tensor y) { return f(std::move(x), std::move(y)); };
    const Dataset traced = pairs.map(map, {.traced = true}).batch(20);
    ASSERT_THAT(stages(traced), StartsWith(std::string(first_stage) + "\n"));
    const std::string wanted = bytes(pairs.map(map, {.traced = false}).batch(20), one_nan);
    ASSERT_FALSE(wanted.empty());
    EXPECT_TRUE(bytes(traced, one_nan) == wanted) << dtype << row << " fused";
    EXPECT_TRUE(bytes(unfused(traced), one_nan) == wanted) << dtype << row << " not fused";
  }
}

struct Named {
  std::string name;
  Function f;
  // A processor forwards the first of two NaNs that are added or multiplied, and compilers swap
  // them.
  bool one_nan = false;
};
std::ostream& operator<<(std::ostream& out, const Named& named) { return out << named.name; }
std::string name_of(const ::testing::TestParamInfo<Named>& info) { return info.param.name; }

std::vector<Named> ops() {
  std::vector<Named> all;
  for (const char* name :
       {"Abs", "Ceil", "Floor", "Identity", "Invert", "Neg", "Relu", "Rint", "Sign", "Square"}) {
    all.push_back({name, [name](Tensor x, Tensor) { return op(name, {x}); }});
  }
  for (const char* name :
       {"AddV2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "GreaterEqual",
        "Less", "LessEqual", "Maximum", "Minimum", "Mul", "NotEqual", "Sub"}) {
    all.push_back({name,
                   [name](Tensor x, Tensor y) {
                     return op(name, {x, y});
                   },
                   name == std::string_view("AddV2") || name == std::string_view("Mul")});
  }
  for (const char* name : {"RealDiv", "Div"}) {  // may fail for integers
    all.push_back({name, [name](Tensor x, Tensor y) {
                     if (!is_floating(x.dtype())) throw InvalidArgumentError("an integer");
                     return op(name, {x, y});
                   }});
  }
  for (const char* name : {"LogicalAnd", "LogicalOr"}) {
    all.push_back({name, [name](Tensor x, Tensor y) { return op(name, {x<y, x> y}); }});
  }
  all.push_back({"LogicalNot", [](Tensor x, Tensor y) { return op("LogicalNot", {x < y}); }});
  all.push_back({"SelectV2", [](Tensor x, Tensor y) { return op("SelectV2", {x < y, x, y}); }});
  for (const DType to : kNumbers) {
    all.push_back({"Cast_" + cat(to), [to](Tensor x, Tensor) {
                     if (x.dtype() == to) throw InvalidArgumentError("nothing to cast");
                     return cast(x, to);
                   }});
  }
  all.push_back({"Several",
                 [](Tensor x, Tensor y) {
                   const Tensor z = nn::relu(x * y - x / (y + y));
                   return where(z > x, maximum(z, y), -z);
                 },
                 true});
  return all;
}

class OnBatches : public ::testing::TestWithParam<Named> {};

TEST_P(OnBatches, GivesTheBytesOfElements) {
  int dtypes = 0;
  for (const DType dtype : kNumbers) {
    if (!traces(GetParam().f, dtype)) continue;
    ++dtypes;
    expect_equal_bytes(GetParam().f, dtype, "Map", GetParam().one_nan);
  }
  EXPECT_GE(dtypes, 4);
}

INSTANTIATE_TEST_SUITE_P(VectorizedMap, OnBatches, ::testing::ValuesIn(ops()), name_of);

class InRows : public ::testing::TestWithParam<Named> {};

// What rounds in another order for other sizes is not run on batches, but in the rows of one.
TEST_P(InRows, GivesTheBytesOfElements) {
  for (const DType dtype : {float32, float64}) {
    expect_equal_bytes(GetParam().f, dtype, "Map+Batch", false);
  }
}

INSTANTIATE_TEST_SUITE_P(
    VectorizedMap, InRows,
    ::testing::Values(Named{"ReduceSum", [](Tensor x, Tensor) { return reduce_sum(x); }},
                      Named{"ReduceMean", [](Tensor x, Tensor y) { return reduce_mean(x * y); }},
                      Named{"ReduceMax", [](Tensor x, Tensor) { return reduce_max(x); }},
                      Named{"CumSum", [](Tensor x, Tensor) { return cumsum(reshape(x, {-1}), 0); }},
                      Named{"Exp", [](Tensor x, Tensor) { return exp(x); }},
                      Named{"Tanh", [](Tensor x, Tensor y) { return tanh(x) + y; }},
                      Named{"Sqrt", [](Tensor x, Tensor) { return sqrt(x); }},
                      Named{"MatMul",
                            [](Tensor x, Tensor y) {
                              return matmul(reshape(x, {1, -1}), reshape(y, {-1, 1}));
                            }}),
    name_of);

}  // namespace
}  // namespace tandem::data
