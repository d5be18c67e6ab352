// Kernels that do not keep their op's promise: an output that is not set, or is of another dtype or
// shape than declared.
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/graph/kernel.h"
#include "tandem/graph/op_decl.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

OpDecl unary(const char* name) {
  return {.name = name,
          .inputs = "x: T",
          .outputs = "y: T",
          .attrs = "T: type",
          .shape = shapes::unchanged};
}

void set_nothing(KernelContext&) {}
const OpRegistration kSetsNothing{unary("TestSetsNothing")};
const KernelRegistration kSetsNothingKernel{
    {.op = "TestSetsNothing", .name = "lazy", .run = set_nothing}};

void never_set(KernelContext&, KernelDone done) { done(nullptr); }
const OpRegistration kNeverSets{unary("TestNeverSets")};
const KernelRegistration kNeverSetsKernel{
    {.op = "TestNeverSets", .name = "late", .run_async = never_set}};

void wrong_shape(KernelContext& c) {
  Array& y = c.allocate_output(0, Shape{1, 2, 3});
  std::fill_n(static_cast<std::byte*>(y.raw_data()), y.num_bytes(), std::byte{0});
}
const OpRegistration kWrongShape{unary("TestWrongShape")};
const KernelRegistration kWrongShapeKernel{
    {.op = "TestWrongShape", .name = "other_shape", .run = wrong_shape}};

void wrong_dtype(KernelContext& c) {
  c.set_output(0, Array::zeros(DType::kInt64, c.input(0).shape()));
}
const OpRegistration kWrongDType{unary("TestWrongDType")};
const KernelRegistration kWrongDTypeKernel{
    {.op = "TestWrongDType", .name = "other_dtype", .run = wrong_dtype}};

void set_the_first(KernelContext& c) { c.set_output(0, c.input(0)); }
const OpRegistration kSetsOne{{.name = "TestSetsOneOfTwo",
                               .inputs = "x: T",
                               .outputs = "y: T, z: T",
                               .attrs = "T: type",
                               .shape = [](InferenceContext& c) {
                                 c.set_output(0, c.input(0));
                                 c.set_output(1, c.input(0));
                               }}};
const KernelRegistration kSetsOneKernel{
    {.op = "TestSetsOneOfTwo", .name = "half", .run = set_the_first}};

template <class Call>
std::string internal_error(Call call) {
  try {
    call();
  } catch (const InternalError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no InternalError";
  return "";
}

// Eager, traced with and without a reader, and where the result is what the function returns.
void expect_refused(const OpRegistration& op, const std::string& name, const std::string& kernel,
                    const std::string& what) {
  const auto names = AllOf(HasSubstr(name), HasSubstr(kernel), HasSubstr(what));
  // The shape of a result is compared when the call is over, which knows the node.
  const auto names_op = AllOf(HasSubstr(name), HasSubstr(what));
  const auto one = [&op](Tensor x) { return call(op, {std::move(x)}).front(); };
  const Tensor x{1.0f, 2.0f};
  EXPECT_THAT(internal_error([&] { one(x).synchronize(); }), names);
  const auto read = function([&](Tensor v) { return one(v) + 1.0f; });
  const auto returned = function([&](Tensor v) { return one(v); });
  const auto looped = function([&](Tensor v) {
    return while_loop([](const Tensor& w) { return reduce_sum(w) < 100.0f; },
                      [&](const Tensor& w) { return one(w) + w; }, v);
  });
  for (int i = 0; i < 5; ++i) {  // plans and frames are kept from call to call
    EXPECT_THAT(internal_error([&] { read(x).synchronize(); }), names) << i;
    EXPECT_THAT(internal_error([&] { returned(x).synchronize(); }), names_op) << i;
    EXPECT_THAT(internal_error([&] { looped(x).synchronize(); }), names) << i;
  }
}

TEST(KernelOutputs, AnOutputThatIsNotSetIsAnError) {
  expect_refused(kSetsNothing, "TestSetsNothing", "lazy", "missing output 0");
}
TEST(KernelOutputs, OfAnAsynchronousKernelToo) {
  expect_refused(kNeverSets, "TestNeverSets", "late", "missing output 0");
}
TEST(KernelOutputs, EachOutputCounts) {
  expect_refused(kSetsOne, "TestSetsOneOfTwo", "half", "missing output 1");
}
TEST(KernelOutputs, AnotherShapeThanDeclaredIsAnError) {
  expect_refused(kWrongShape, "TestWrongShape", "other_shape", "[1,2,3]");
}
TEST(KernelOutputs, AnotherDTypeThanDeclaredIsAnError) {
  expect_refused(kWrongDType, "TestWrongDType", "other_dtype", "int64");
}

TEST(KernelOutputs, OnDevicesToo) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB"}}});
  const RuntimeScope scope(runtime);
  expect_refused(kSetsNothing, "TestSetsNothing", "lazy", "missing output 0");
  expect_refused(kSetsOne, "TestSetsOneOfTwo", "half", "missing output 1");
}

}  // namespace
}  // namespace tandem
