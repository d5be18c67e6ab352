// Products of matrices through cuBLASLt on a device GPU:0, with stand-ins for the driver and the
// library.

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/device/library_report.h"
#include <tandem/tandem.h>

#include "tests/cuda/cublaslt_stand_in.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

CublasLtStandInUse used() {
  static const CublasLtStandInControl* const control = [] {
    void* library = dlopen(TANDEM_CUBLASLT_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::abort();
    return reinterpret_cast<const CublasLtStandInControl* (*)()>(
        dlsym(library, "cublaslt_stand_in_control"))();
  }();
  return control->used();
}

// Some numbers between -1 and 1.
Tensor values(const Shape& shape, DType dtype, int seed) {
  std::vector<float> all(static_cast<std::size_t>(shape.num_elements()));
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761u + 12345u;
  for (float& value : all) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 23) - 1.0f;
  }
  const DeviceScope on("/CPU:0");
  return cast(Tensor::from(all, shape), dtype);
}

std::vector<float> run_on(const char* device, const std::string& op,
                          const std::vector<Tensor>& inputs, const AttrMap& attrs) {
  config::set_soft_device_placement(false);
  Tensor result;
  {
    const DeviceScope on(device);
    result = raw_op(op, inputs, attrs)[0];
  }
  const DeviceScope on("/CPU:0");
  return cast(result, DType::kFloat).to_vector<float>();
}

float tolerance(DType dtype) {
  return dtype == DType::kBFloat16 ? 4e-2f : dtype == DType::kHalf ? 4e-3f : 2e-5f;
}

// Both devices give the same, and cuBLASLt is asked for it.
void expect_by_library(const std::string& op, const std::vector<Tensor>& inputs,
                       const AttrMap& attrs, const std::string& what) {
  const std::vector<float> wanted = run_on("/CPU:0", op, inputs, attrs);
  const long long before = used().products;
  const std::vector<float> got = run_on("/GPU:0", op, inputs, attrs);
  EXPECT_GT(used().products, before) << what;
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(tolerance(inputs[0].dtype())), wanted))
      << op << ' ' << what;
}

constexpr DType kTypes[] = {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16};

TEST(ProductsByCublasLt, OfEveryTypeAndTranspose) {
  for (const DType dtype : kTypes) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const bool a = transposed & 1, b = transposed & 2;
      AttrMap attrs;
      attrs.set("transpose_a", a);
      attrs.set("transpose_b", b);
      expect_by_library("MatMul",
                        {values(a ? Shape{7, 5} : Shape{5, 7}, dtype, 1),
                         values(b ? Shape{19, 7} : Shape{7, 19}, dtype, 2)},
                        attrs, cat(dtype, " transposed ", transposed));
    }
  }
}

TEST(ProductsByCublasLt, OfBatches) {
  for (int transposed = 0; transposed < 4; ++transposed) {
    const bool a = transposed & 1, b = transposed & 2;
    AttrMap attrs;
    attrs.set("adj_x", a);
    attrs.set("adj_y", b);
    const Tensor left = values(a ? Shape{3, 2, 7, 5} : Shape{3, 2, 5, 7}, DType::kFloat, 1);
    for (const Shape& batch : {Shape{3, 2}, Shape{1, 1}}) {
      const Shape right = b ? Shape{batch[0], batch[1], 4, 7} : Shape{batch[0], batch[1], 7, 4};
      expect_by_library("BatchMatMulV2", {left, values(right, DType::kFloat, 2)}, attrs,
                        cat(batch, " transposed ", transposed));
    }
  }
}

// Operands and results in any order; those that lie as matrices are not copied.
TEST(ProductsByCublasLt, OfEinsteinSums) {
  struct Case {
    const char* equation;
    Shape a, b;
  };
  const Case cases[] = {{"abc,cde->abde", {2, 5, 6}, {6, 3, 4}},
                        {"abde,cde->abc", {2, 5, 3, 4}, {6, 3, 4}},
                        {"abc,abde->cde", {2, 5, 6}, {2, 5, 3, 4}},
                        {"abde,abc->cde", {2, 5, 3, 4}, {2, 5, 6}},
                        {"abc,acd->adb", {3, 4, 5}, {3, 5, 6}},
                        {"...ij,jk->...ik", {2, 3, 4, 5}, {5, 6}},
                        {"BTNH,BSNH->BNTS", {2, 32, 4, 33}, {2, 40, 4, 33}},
                        {"BNTS,BSNH->BTNH", {2, 4, 32, 40}, {2, 40, 4, 33}}};
  for (const Case& one : cases) {
    AttrMap attrs;
    attrs.set("equation", std::string(one.equation));
    attrs.set("N", std::int64_t{2});
    for (const DType dtype : kTypes) {
      expect_by_library("Einsum", {values(one.a, dtype, 1), values(one.b, dtype, 2)}, attrs,
                        cat(one.equation, ' ', dtype));
    }
  }
}

TEST(ProductsByCublasLt, LeaveOtherEinsteinSumsToOurOwnKernel) {
  for (const auto& [equation, a, b] :
       {std::tuple<const char*, Shape, Shape>{"ij,jk->k", {4, 5}, {5, 6}},
        {"ii,ij->ij", {5, 5}, {5, 6}},
        {"BTNH,BSNH->BNTS", {2, 3, 2, 4}, {2, 5, 2, 4}}}) {
    AttrMap attrs;
    attrs.set("equation", std::string(equation));
    attrs.set("N", std::int64_t{2});
    const std::vector<Tensor> inputs{values(a, DType::kFloat, 1), values(b, DType::kFloat, 2)};
    const long long before = used().products;
    EXPECT_THAT(
        run_on("/GPU:0", "Einsum", inputs, attrs),
        testing::Pointwise(testing::FloatNear(2e-5f), run_on("/CPU:0", "Einsum", inputs, attrs)))
        << equation;
    EXPECT_EQ(used().products, before) << equation;
  }
}

TEST(ProductsByCublasLt, WithWhatFollows) {
  for (const DType dtype : {DType::kFloat, DType::kBFloat16, DType::kHalf}) {
    for (const char* activation : {"Relu", "GeluApproximate", "GeluExact", "Tanh"}) {
      AttrMap attrs;
      attrs.set("fused_ops", Strings{"BiasAdd", "Add", activation});
      attrs.set("num_args", std::int64_t{2});
      const Tensor a = values({5, 7}, DType::kFloat, 1), b = values({7, 19}, DType::kFloat, 2);
      const Tensor bias = values({19}, DType::kFloat, 3),
                   addend = values({5, 19}, DType::kFloat, 4);
      const std::vector<float> wanted =
          run_on("/CPU:0", "_FusedMatMul", {a, b, bias, addend}, attrs);
      std::vector<Tensor> narrow;
      for (const Tensor& one : {a, b, bias, addend}) {
        const DeviceScope on("/CPU:0");
        narrow.push_back(cast(one, dtype));
      }
      const long long before = used().products;
      const std::vector<float> got = run_on("/GPU:0", "_FusedMatMul", narrow, attrs);
      EXPECT_EQ(used().products, before + 1);
      EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(tolerance(dtype)), wanted))
          << dtype << ' ' << activation;
    }
  }
}

TEST(ProductsByCublasLt, AskForAlgorithmsOnceForEachProblem) {
  const Tensor a = values({6, 11}, DType::kFloat, 1), b = values({11, 3}, DType::kFloat, 2);
  run_on("/GPU:0", "MatMul", {a, b}, {});
  const CublasLtStandInUse before = used();
  for (int i = 0; i < 3; ++i) run_on("/GPU:0", "MatMul", {a, b}, {});
  EXPECT_EQ(used().heuristics, before.heuristics);
  EXPECT_EQ(used().products, before.products + 3);
}

TEST(ProductsByCublasLt, UseTensorFloat32OnlyWhereItIsEnabled) {
  EXPECT_FALSE(config::tensor_float_32_execution_enabled());
  const Tensor a = values({6, 12}, DType::kFloat, 1), b = values({12, 3}, DType::kFloat, 2);
  const Tensor wide = cast(a, DType::kDouble), wide_b = cast(b, DType::kDouble);
  run_on("/GPU:0", "MatMul", {a, b}, {});
  EXPECT_EQ(used().products_in_tf32, 0);
  config::enable_tensor_float_32_execution(true);
  run_on("/GPU:0", "MatMul", {a, b}, {});
  run_on("/GPU:0", "MatMul", {wide, wide_b}, {});
  config::enable_tensor_float_32_execution(false);
  EXPECT_EQ(used().products_in_tf32, 1);
}

// A slice, whose address has a smaller alignment.
TEST(ProductsByCublasLt, OfMatricesThatBeginAnywhere) {
  const Tensor all = values({3, 5, 7}, DType::kFloat, 1), b = values({7, 4}, DType::kFloat, 2);
  const auto second = [&] { return matmul(identity(all)[1], b); };
  std::vector<float> wanted, got;
  {
    const DeviceScope on("/CPU:0");
    wanted = second().to_vector<float>();
  }
  {
    const DeviceScope on("/GPU:0");
    got = second().to_vector<float>();
  }
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(2e-5f), wanted));
}

// ---- What is measured ----

std::string file_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return {};
}

// Large enough to be worth measuring.
CublasLtStandInUse after_a_large_product() {
  const Tensor a = values({170, 160}, DType::kFloat, 1), b = values({160, 160}, DType::kFloat, 2);
  run_on("/GPU:0", "MatMul", {a, b}, {});
  return used();
}

// Expects what `body` expects, in a process of its own with these variables.
void in_new_process(const std::vector<std::pair<std::string, std::string>>& variables,
                    const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
        body();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

class MeasuredProducts : public testing::Test {
 protected:
  // The same name in the test's process and in those that it starts.
  const std::string folder_ = testing::TempDir() + "/measured-products";
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(MeasuredProducts, AreKeptForLaterProcesses) {
  in_new_process({{"TANDEM_CACHE_DIR", folder_}}, [] {
    const CublasLtStandInUse use = after_a_large_product();
    EXPECT_EQ(use.heuristics, 1);
    EXPECT_GT(use.products, 3) << "each of the three algorithms is measured";
  });
  EXPECT_THAT(file_in(folder_), HasSubstr("product float nn 170x160x160"));
  in_new_process({{"TANDEM_CACHE_DIR", folder_}}, [] {
    const CublasLtStandInUse use = after_a_large_product();
    EXPECT_EQ(use.checks, 1);
    EXPECT_EQ(use.heuristics, 0);
    EXPECT_EQ(use.products, 1);
  });
}

TEST_F(MeasuredProducts, AreMeasuredAgainWhereTheFileIsDamaged) {
  in_new_process({{"TANDEM_CACHE_DIR", folder_}}, [] { after_a_large_product(); });
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) / 2);
  in_new_process({{"TANDEM_CACHE_DIR", folder_}},
                 [] { EXPECT_GT(after_a_large_product().products, 3); });
  EXPECT_THAT(file_in(folder_), HasSubstr("end\t1"));
}

TEST_F(MeasuredProducts, AreLeftOutUnderOpDeterminism) {
  in_new_process({{"TANDEM_CACHE_DIR", folder_}}, [] {
    config::enable_op_determinism();
    EXPECT_EQ(after_a_large_product().products, 1);
  });
  EXPECT_EQ(file_in(folder_), "");
}

TEST_F(MeasuredProducts, AreLeftOutOnRequest) {
  in_new_process({{"TANDEM_CACHE_DIR", folder_}, {"TANDEM_TUNING", "0"}},
                 [] { EXPECT_EQ(after_a_large_product().products, 1); });
  EXPECT_EQ(file_in(folder_), "");
}

// ---- Without the library ----

std::string report() {
  std::string lines;
  for (const auto& backend : Runtime::current().inventory().backends())
    lines += libraries_of(*backend);
  return lines;
}

TEST(ProductsOnGpu, HaveALibraryThatIsReported) {
  EXPECT_THAT(report(), HasSubstr("cuBLASLt 13.1.0 ("));
}

TEST(ProductsOnGpu, AreTheSameWithoutCublasLt) {
  in_new_process({{"TANDEM_CUDA_LIBRARIES", "none"}}, [] {
    const Tensor a = values({5, 7}, DType::kFloat, 1), b = values({7, 19}, DType::kFloat, 2);
    EXPECT_THAT(
        run_on("/GPU:0", "MatMul", {a, b}, {}),
        testing::Pointwise(testing::FloatNear(2e-5f), run_on("/CPU:0", "MatMul", {a, b}, {})));
    EXPECT_EQ(used().products, 0);
    EXPECT_THAT(report(), HasSubstr("cuBLASLt is not used: TANDEM_CUDA_LIBRARIES leaves it out; "
                                    "products of matrices run by Tandem's own kernels"));
  });
}

}  // namespace
}  // namespace tandem
