#include "tandem/graph/kernel.h"

#include <gmock/gmock.h>

#include "tandem/device/host/host_backend.h"

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const KernelList& list) {
  std::vector<std::string> all;
  for (const KernelDecl* k : list.candidates) all.push_back(k->name);
  return all;
}

// A context with just the inputs that `accepts` looks at.
struct Case {
  Case(const char* op, Array x) : input(std::move(x)) {
    context.op_ = &test_ops().get(op);
    context.inputs_ = pointers;
    context.num_inputs_ = 1;
  }
  Array input;
  const Array* pointers[1] = {&input};
  KernelContext context;
};

TEST(KernelRegistry, OrdersCandidatesFastestFirst) {
  const KernelRegistry kernels;
  const OpDef& op = test_ops().get("TestAdd");
  EXPECT_THAT(names(kernels.get(op, "test", {{"T", float32}})),
              ElementsAre("fast", "middle", "reference"));
  EXPECT_THAT(names(kernels.get(op, "test", {{"T", int32}})), ElementsAre("reference"));
  EXPECT_EQ(&kernels.get(op, "test", {{"T", float32}}), &kernels.get(op, "test", {{"T", float32}}))
      << "found again, not made again";
  EXPECT_EQ(kernels.all("TestAdd").size(), 3u);
  EXPECT_TRUE(kernels.all("TestNothing").empty());
}

TEST(KernelRegistry, SaysForWhatThereAreKernels) {
  const KernelRegistry kernels;
  EXPECT_EQ(kernels.find(test_ops().get("TestNegate"), "test", {{"T", int8}}), nullptr);
  EXPECT_EQ(
      thrown<UnimplementedError>([&] {
        kernels.get(test_ops().get("TestNegate"), "test", {{"T", int8}});
      }),
      "Op TestNegate has no test kernel for T=int8. There are kernels for: test T in {float}.");
  EXPECT_THAT(thrown<UnimplementedError>([&] {
                kernels.get(test_ops().get("TestNegate"), "tpu", {{"T", float32}});
              }),
              HasSubstr("has no tpu kernel for T=float"));
  EXPECT_THAT(thrown<UnimplementedError>([&] {
                kernels.get(test_ops().get("TestEffect"), "test", {{"T", float32}});
              }),
              HasSubstr("There is none at all."));
}

TEST(KernelRegistry, ChecksListsOfTypes) {
  const KernelRegistry kernels;
  const OpDef& op = test_ops().get("TestTuple");
  EXPECT_NE(kernels.find(op, "test", {{"Tin", std::vector<DType>{float32, string}}}), nullptr);
  EXPECT_EQ(kernels.find(op, "test", {{"Tin", std::vector<DType>{float32, int32}}}), nullptr);
  EXPECT_EQ(kernels.find(op, "test", {}), nullptr);
}

TEST(KernelList, TakesTheFirstThatAccepts) {
  const KernelRegistry kernels;
  const KernelList& list = kernels.get(test_ops().get("TestAdd"), "test", {{"T", float32}});
  EXPECT_STREQ(list.choose(Case("TestAdd", Array(float32, {2})).context).name, "fast");
  EXPECT_STREQ(list.choose(Case("TestAdd", Array(float32, {2, 2})).context).name, "reference");
}

TEST(KernelList, NamesEachRefusal) {
  const KernelRegistry kernels;
  const KernelList& list = kernels.get(test_ops().get("TestNegate"), "test", {{"T", float32}});
  EXPECT_STREQ(list.choose(Case("TestNegate", Array(float32, {1})).context).name, "only");
  EXPECT_EQ(thrown<UnimplementedError>(
                [&] { list.choose(Case("TestNegate", Array(float32, {0})).context); }),
            "Op TestNegate: no kernel takes this case (only: nothing to add).");
}

TEST(KernelRegistry, TakesKernelsThatComeLater) {
  const KernelRegistry kernels;
  const OpDef& op = test_ops().get("TestSplitInTwo");
  EXPECT_EQ(kernels.find(op, "test", {{"T", float32}}), nullptr);
  static const KernelRegistration late{
      {.op = "TestSplitInTwo", .name = "late", .kernel_class = "test", .run = [](KernelContext&) {
       }}};
  ASSERT_NE(kernels.find(op, "test", {{"T", float32}}), nullptr);
  EXPECT_THAT(names(*kernels.find(op, "test", {{"T", float32}})), ElementsAre("late"));
}

TEST(KernelRegistry, FindsKernelsOfEveryClassAfterThoseOfTheClass) {
  static const KernelRegistration every{{.op = "TestPack",
                                         .name = "every",
                                         .kernel_class = "*",
                                         .priority = 50,
                                         .run = [](KernelContext&) {}}};
  static const KernelRegistration own{{.op = "TestPack",
                                       .name = "own",
                                       .kernel_class = "test",
                                       .types = {{"T", {int32}}},
                                       .run = [](KernelContext&) {}}};
  const KernelRegistry kernels;
  const OpDef& op = test_ops().get("TestPack");
  const DType int64 = DType::kInt64;
  EXPECT_THAT(names(*kernels.find(op, "test", {{"T", int32}})), ElementsAre("own", "every"));
  EXPECT_THAT(names(*kernels.find(op, "test", {{"T", int64}})), ElementsAre("every"));
  EXPECT_THAT(names(*kernels.find(op, "no such class", {{"T", int32}})), ElementsAre("every"));
}

TEST(KernelRegistry, EmulatedClassesHaveTheHostsKernels) {
  const KernelRegistry kernels;
  const OpDef& op = test_ops().get("TestShapeOf");
  static const KernelRegistration host{
      {.op = "TestShapeOf", .name = "host", .kernel_class = "cpu", .run = [](KernelContext&) {}}};
  EXPECT_THAT(names(*kernels.find(op, "emulated-x", {{"T", float32}})), ElementsAre("host"));
  EXPECT_EQ(kernels.find(op, "cuda", {{"T", float32}}), nullptr);
}

// A context for an op with `count` outputs, as the runtime fills it in.
struct Execution {
  explicit Execution(int count)
      : outputs(static_cast<std::size_t>(count)), dtypes(outputs.size(), float32) {
    for (Array& a : outputs) pointers.push_back(&a);
    services.device = device.get();
    services.allocator = &device->allocator();
    context.op_ = &test_ops().get("TestAdd");
    context.attrs_ = &attrs;
    context.outputs_ = pointers.data();
    context.output_dtypes_ = dtypes.data();
    context.num_outputs_ = count;
    context.services_ = &services;
  }
  void give(Array array) {
    inputs.push_back(std::make_unique<Array>(std::move(array)));
    input_pointers.push_back(inputs.back().get());
    context.inputs_ = input_pointers.data();
    context.num_inputs_ = static_cast<int>(inputs.size());
  }
  std::shared_ptr<Device> device =
      HostBackend().make_device({"/physical_device:CPU:0", "CPU"}, {},
                                DeviceSpec::parse("/job:localhost/replica:0/task:0/device:CPU:0"));
  KernelServices services;
  AttrMap attrs;
  std::vector<Array> outputs;
  std::vector<DType> dtypes;
  std::vector<Array*> pointers;
  std::vector<std::unique_ptr<Array>> inputs;
  std::vector<const Array*> input_pointers;
  KernelContext context;
};

TEST(KernelContext, AllocatesOutputs) {
  Execution e(1);
  Array& output = e.context.allocate_output(0, {2, 3});
  EXPECT_EQ(output.shape(), (Shape{2, 3}));
  EXPECT_EQ(output.dtype(), float32);
  EXPECT_EQ(&output, &e.outputs[0]);
  e.dtypes[0] = string;
  EXPECT_EQ(e.context.allocate_output(0, {2}).values<std::string>()[1], "");
}

TEST(KernelContext, UsesPlannedMemoryForThePlannedShape) {
  Execution e(2);
  e.outputs[0] = Array(float32, {4});
  e.outputs[1] = Array(float32, {4});
  e.context.planned_outputs_ = 0b11;
  const void* planned = e.outputs[0].raw_data();
  EXPECT_EQ(e.context.allocate_output(0, {4}).raw_data(), planned);
  EXPECT_EQ(e.context.allocate_output(1, {5}).shape(), (Shape{5}));
  EXPECT_EQ(e.context.planned_outputs_, 0b01u);
  const Array value = Array::vector<float>({1, 2, 3, 4});
  e.context.set_output(0, value);
  EXPECT_EQ(e.outputs[0].raw_data(), planned) << "copied to where the plan wants it";
  EXPECT_TRUE(e.outputs[0] == value);
}

TEST(KernelContext, TakesOverInputsThatNothingElseHolds) {
  Execution e(1);
  e.give(Array(float32, {4}));
  const void* mine = e.context.input(0).raw_data();
  EXPECT_NE(e.context.reuse_or_allocate_output(0, 0, {4}).raw_data(), mine) << "not owned";
  e.context.owned_inputs_ = 1;
  EXPECT_EQ(e.context.reuse_or_allocate_output(0, 0, {2, 2}).raw_data(), mine);
  e.outputs[0] = Array();
  const Array held = e.context.input(0);
  EXPECT_NE(e.context.reuse_or_allocate_output(0, 0, {4}).raw_data(), mine) << "held elsewhere";
  EXPECT_NE(e.context.reuse_or_allocate_output(0, 0, {5}).raw_data(), mine) << "of another size";
}

TEST(KernelContext, HasLongListsOfOutputsAndInputs) {
  // The masks of the plan have 64 bits; outputs and inputs beyond them are on their own.
  Execution e(130);
  e.context.planned_outputs_ = 1;
  e.context.owned_inputs_ = ~std::uint64_t{0};
  for (int i = 0; i < 130; ++i) e.give(Array(float32, {1}));
  e.outputs[0] = Array(float32, {1});
  for (int i = 0; i < 130; ++i) {
    EXPECT_EQ(e.context.may_overwrite_input(i), i < 64) << i;
    EXPECT_EQ(e.context.allocate_output(i, {i + 1}).shape(), (Shape{i + 1}));
    e.context.set_output(i, Array::vector<float>({1}));
    EXPECT_EQ(e.outputs[static_cast<std::size_t>(i)].shape(), Shape{1});
  }
}

TEST(KernelContext, GivesAttributesOrTheirDefaults) {
  Execution e(1);
  e.context.op_ = &test_ops().get("TestNegate");
  e.give(Array(int8, {1}));
  EXPECT_EQ(e.context.attr<std::string>("mode"), "A");
  e.attrs.set("mode", "B");
  EXPECT_EQ(e.context.attr<std::string>("mode"), "B");
  EXPECT_EQ(e.context.type_attr("T"), int8) << "follows from the input";
  EXPECT_EQ(e.context.find_attr("nothing"), nullptr);
  EXPECT_THROW(e.context.attr<bool>("mode"), InternalError);
  EXPECT_THROW(e.context.attr<bool>("nothing"), InternalError);
}

}  // namespace
}  // namespace tandem
