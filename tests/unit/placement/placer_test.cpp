#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/graph/function.h"

#include "tests/unit/placement/placer_util.h"

namespace tandem::placer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AttrMap colocated(const char* with) {
  return {{"_class", std::vector<std::string>{std::string("loc:@") + with}}};
}

// A function of a resource and a string, which returns nothing.
FunctionRef function_of_resource_and_string() {
  Scene body((DeviceSet()));
  const std::vector<Node*> args{body.add("_Arg", "a", {}, "", {{"T", resource}, {"index", 0}}),
                                body.add("_Arg", "b", {}, "", {{"T", string}, {"index", 1}})};
  return std::make_shared<const Function>("f", std::move(body.graph), args, std::vector<Output>{});
}

// ---- Defaults ----

TEST(PlacerTest, AcceleratorsComeBeforeCpusAndLowIndicesFirst) {
  Scene s(devices(2, 2));
  Node* a = s.value("a");
  s.run();
  EXPECT_EQ(s.where(a), "GPU:0");
  EXPECT_EQ(s.placement.of(*a).by, PlacedBy::kGreedy);
  EXPECT_FALSE(s.placement.of(*a).reason.empty());
}

TEST(PlacerTest, DefaultDeviceComesFirstWhereItCan) {
  Scene s(devices(2, 1));
  s.options.default_device = "/CPU:1";
  Node* a = s.value("a");
  Node* b = s.value("b", "/GPU:0");
  s.run();
  EXPECT_EQ(s.where(a), "CPU:1");
  EXPECT_EQ(s.where(b), "GPU:0");
}

TEST(PlacerTest, DefaultDeviceThatDoesNotExist) {
  Scene s(devices(1));
  s.options.default_device = "/GPU:3";
  Node* a = s.value("a");
  s.run();
  EXPECT_EQ(s.where(a), "CPU:0");
  s.options.soft = false;
  EXPECT_EQ(s.failure(),
            "Could not satisfy device specification '/device:GPU:3'. enable_soft_placement=0. "
            "Supported device types [CPU]. All available devices "
            "[/job:localhost/replica:0/task:0/device:CPU:0].");
}

TEST(PlacerTest, NoDevices) {
  Scene s(DeviceSet{});
  s.source("a");
  EXPECT_EQ(s.failure(), "No devices are registered");
}

// ---- Requests ----

TEST(PlacerTest, RequestsFullAndPartial) {
  Scene s(devices(3, 2));
  Node* full = s.value("full", "/job:localhost/replica:0/task:0/device:CPU:2");
  Node* index = s.value("index", "/gpu:1");
  Node* type = s.value("type", "/device:CPU:*");
  Node* job = s.value("job", "/job:localhost");
  s.run();
  EXPECT_EQ(s.where(full), "CPU:2");
  EXPECT_EQ(s.where(index), "GPU:1");
  EXPECT_EQ(s.where(type), "CPU:0");
  EXPECT_EQ(s.where(job), "GPU:0");
  EXPECT_EQ(s.placement.of(*index).by, PlacedBy::kRequest);
  EXPECT_EQ(s.placement.of(*index).reason, "asked for /gpu:1");
}

TEST(PlacerTest, ImpossibleRequestFallsBackWithSoftPlacement) {
  Scene s(devices(2));
  Node* a = s.value("a", "/device:GPU:0");
  Node* b = s.value("b", "/device:CPU:9");
  s.run();
  EXPECT_EQ(soft_placement_line(s.graph, s.placement),
            "Soft placement: 'a' (Identity) asked for /device:GPU:0, but there is no such device; "
            "it runs on /job:localhost/replica:0/task:0/device:CPU:0 (and 1 more).");
  EXPECT_EQ(s.where(a), "CPU:0");
  EXPECT_EQ(s.where(b), "CPU:0");
  EXPECT_EQ(s.placement.of(*a).by, PlacedBy::kSoft);
  EXPECT_EQ(s.placement.of(*b).reason, "asked for /device:CPU:9, but there is no such device");
}

TEST(PlacerTest, ImpossibleRequestIsAnErrorWithoutSoftPlacement) {
  Scene s(devices(2));
  s.options.soft = false;
  s.value("a", "/device:GPU:0");
  EXPECT_EQ(s.failure(),
            "Cannot assign a device for operation a: {{node a}} was explicitly assigned to "
            "/device:GPU:0 but available devices are [ "
            "/job:localhost/replica:0/task:0/device:CPU:0, "
            "/job:localhost/replica:0/task:0/device:CPU:1 ]. Make sure the device specification "
            "refers to a valid device. The requested device appears to be a GPU, but CUDA is not "
            "enabled.\n\t [[a]]\n"
            "Devices with a kernel: [/job:localhost/replica:0/task:0/device:CPU:0, "
            "/job:localhost/replica:0/task:0/device:CPU:1].");
}

TEST(PlacerTest, UnknownJobIsAnErrorEvenWithSoftPlacement) {
  Scene s(devices(1));
  s.value("a", "/job:foo/task:0/device:CPU:0");
  EXPECT_EQ(s.failure(),
            "Cannot assign a device for operation a: {{node a}} was explicitly assigned to "
            "/job:foo/task:0/device:CPU:0 but available devices are [ "
            "/job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification "
            "refers to a valid device.\n\t [[a]]\n"
            "Devices with a kernel: [/job:localhost/replica:0/task:0/device:CPU:0].");
}

TEST(PlacerTest, MalformedRequestNamesTheNode) {
  Scene s(devices(1));
  s.value("a", "/foo:0");
  const std::string text = s.failure();
  EXPECT_THAT(text, HasSubstr("Malformed device specification '/foo:0' in node: {{node a}}"));
  EXPECT_THAT(text, HasSubstr("Unknown attribute 'foo'"));
}

// ---- Kernels ----

TEST(PlacerTest, StringsRunOnCpus) {
  Scene s(devices(1, 1));
  Node* text = s.value("text", "", string);
  Node* join = s.add("StringJoin", "join", {{text, 0}, {text, 0}});
  Node* there = s.add("StringJoin", "there", {{text, 0}, {text, 0}}, "/GPU:0");
  s.run();
  EXPECT_EQ(s.where(text), "CPU:0");
  EXPECT_EQ(s.where(join), "CPU:0");
  EXPECT_EQ(s.placement.of(*join).by, PlacedBy::kOnlyKernel);
  EXPECT_THAT(s.placement.of(*join).refused, ElementsAre("GPU:0: takes or gives strings"));
  EXPECT_EQ(s.placement.of(*there).by, PlacedBy::kSoft);
  EXPECT_EQ(s.placement.of(*there).reason, "asked for /GPU:0, but that has no kernel for it");
}

TEST(PlacerTest, NoKernelForTheTypeAskedFor) {
  Scene s(devices(1, 1));
  s.options.soft = false;
  Node* text = s.value("text", "", string);
  s.add("StringJoin", "join", {{text, 0}, {text, 0}}, "/GPU:0");
  EXPECT_THAT(s.failure(),
              HasSubstr("Cannot assign a device for operation join: Could not satisfy explicit "
                        "device specification '/GPU:0' because no supported kernel for GPU devices "
                        "is available. Op: StringJoin. Devices with a kernel: "
                        "[/job:localhost/replica:0/task:0/device:CPU:0]. All available devices "
                        "[/job:localhost/replica:0/task:0/device:GPU:0, "
                        "/job:localhost/replica:0/task:0/device:CPU:0]."));
}

TEST(PlacerTest, QueuesRunOnCpus) {
  Scene s(devices(2, 1));
  Node* queue =
      s.add("FIFOQueueV2", "queue", {}, "", {{"component_types", std::vector<DType>{float32}}});
  Node* x = s.value("x");
  Node* put = s.add("QueueEnqueueV2", "put", {{queue, 0}, {x, 0}});
  Node* other = s.add("FIFOQueueV2", "other", {}, "/CPU:1",
                      {{"component_types", std::vector<DType>{float32}}});
  Node* take = s.add("QueueDequeueV2", "take", {{other, 0}}, "/GPU:0",
                     {{"component_types", std::vector<DType>{float32}}});
  s.run();
  EXPECT_EQ(s.where(queue), "CPU:0");
  EXPECT_EQ(s.where(put), "CPU:0");
  EXPECT_EQ(s.where(x), "GPU:0");
  EXPECT_EQ(s.where(take), "CPU:1");
  EXPECT_THAT(s.placement.of(*queue).refused, ElementsAre("GPU:0: FIFOQueueV2 runs on CPUs alone"));
}

TEST(PlacerTest, CallsTakeStringsAndResourcesOfOtherDevices) {
  Scene s(devices(1, 2));
  Node* v = s.variable("v", "/GPU:1");
  Node* text = s.value("text", "", string);
  Node* call = s.add("PartitionedCall", "call", {{v, 0}, {text, 0}}, "/GPU:0",
                     {{"f", function_of_resource_and_string()},
                      {"Tin", std::vector<DType>{resource, string}},
                      {"Tout", std::vector<DType>{}}});
  s.run();
  EXPECT_EQ(s.where(v), "GPU:1");
  EXPECT_EQ(s.where(call), "GPU:0");
  EXPECT_EQ(s.where(text), "CPU:0");
}

TEST(PlacerTest, OpsThatADeviceIsWithout) {
  Scene s(devices(1, 2));
  s.devices.devices[1].without = {"Exp"};
  Node* exp = s.add("Exp", "exp", {{s.value("a"), 0}});
  s.run();
  EXPECT_EQ(s.where(exp), "GPU:1");
  EXPECT_THAT(s.placement.of(*exp).refused, ElementsAre("GPU:0: has no kernel for Exp"));
}

TEST(PlacerTest, KernelsOfAnotherClass) {
  Scene s(devices(1, 1));
  s.devices.devices[1].kernel_class = "no such class";
  Node* exp = s.add("Exp", "exp", {{s.value("a"), 0}});  // Identity has a kernel of every class
  s.run();
  EXPECT_EQ(s.where(exp), "CPU:0");
  EXPECT_EQ(s.placement.of(*exp).by, PlacedBy::kOnlyKernel);
  EXPECT_THAT(s.placement.of(*exp).refused,
              ElementsAre("GPU:0: has no kernel for Exp with T=float"));
}

TEST(PlacerTest, AnOpThatNoDeviceCanRun) {
  Scene s(devices(1));
  s.devices.devices[0].without = {"Exp"};
  s.add("Exp", "exp", {{s.value("a"), 0}});
  EXPECT_THAT(s.failure(), HasSubstr("No OpKernel was registered to support Op 'Exp' used by "
                                     "{{node exp}} (Exp) on any of the devices: CPU:0: has no "
                                     "kernel for Exp."));
}

TEST(PlacerTest, OpsOnSmallIntegersStayWithTheAccelerator) {
  Scene s(devices(1, 1));
  Node* a = s.value("a", "", int32);
  s.run();
  EXPECT_EQ(s.where(a), "GPU:0");
  EXPECT_EQ(s.placement.of(*a).by, PlacedBy::kHostMemory);
}

// ---- Variables and colocation ----

TEST(PlacerTest, OpsGoWithTheirResource) {
  Scene s(devices(3, 1));
  Node* v = s.variable("v", "/CPU:1");
  Node* value = s.value("value", "/CPU:2");
  Node* assign = s.add("AssignVariableOp", "assign", {{v, 0}, {value, 0}}, "/CPU:2");
  Node* read = s.add("ReadVariableOp", "read", {{v, 0}}, "", {{"dtype", float32}});
  s.run();
  EXPECT_EQ(s.where(v), "CPU:1");
  EXPECT_EQ(s.where(value), "CPU:2");
  EXPECT_EQ(s.where(assign), "CPU:1");
  EXPECT_EQ(s.where(read), "CPU:1");
  EXPECT_EQ(s.placement.of(*read).by, PlacedBy::kColocation);
  EXPECT_EQ(s.placement.of(*read).reason, "colocated with 'v', which asked for /device:CPU:1");
  EXPECT_EQ(s.placement.of(*assign).reason,
            "asked for /CPU:2, but it is colocated with 'v', which asked for /device:CPU:1");
}

TEST(PlacerTest, OpsGoWithTheirReferenceButReadersDoNot) {
  Scene s(devices(3));
  Node* v = s.add("VariableV2", "v", {}, "/CPU:1",
                  {{"dtype", float32}, {"shape", PartialShape(Shape{2, 3})}});
  Node* assign = s.add("Assign", "assign", {{v, 0}, {s.value("value"), 0}});
  Node* read = s.add("Identity", "read", {{v, 0}});
  s.run();
  EXPECT_EQ(s.where(assign), "CPU:1");
  EXPECT_EQ(s.where(read), "CPU:0");
}

TEST(PlacerTest, AGivenResourceTakesItsOpsAlong) {
  Scene s(devices(2, 2));
  Node* handle = s.add("_Arg", "handle", {}, "", {{"T", resource}, {"index", 0}});
  Node* read = s.add("ReadVariableOp", "read", {{handle, 0}}, "", {{"dtype", float32}});
  s.options.fixed = {{handle, 3}};
  s.run();
  EXPECT_EQ(s.where(handle), "GPU:1");
  EXPECT_EQ(s.where(read), "GPU:1");
  EXPECT_EQ(s.placement.of(*handle).reason, "its value is there already");
  EXPECT_THAT(s.placement.of(*read).reason, HasSubstr("colocated with 'handle', which is on"));
}

TEST(PlacerTest, TwoGivenResourcesInOneOp) {
  Scene s(devices(1, 2));
  Node* a = s.add("_Arg", "a", {}, "", {{"T", resource}, {"index", 0}});
  Node* b = s.add("_Arg", "b", {}, "", {{"T", resource}, {"index", 1}});
  s.add("Pack", "both", {{a, 0}, {b, 0}});
  s.options.fixed = {{a, 1}, {b, 2}};
  EXPECT_THAT(
      s.failure(),
      HasSubstr("Cannot place the graph because a reference or resource edge connects colocation "
                "groups with incompatible assigned devices: "
                "/job:localhost/replica:0/task:0/device:GPU:1 vs "
                "/job:localhost/replica:0/task:0/device:GPU:0. The edge src node is b , and the "
                "dst node is both."));
}

TEST(PlacerTest, AGivenDeviceThatDoesNotExist) {
  Scene s(devices(1));
  Node* a = s.source("a");
  s.options.fixed = {{a, 4}};
  EXPECT_THAT(s.failure(), HasSubstr("{{node a}} (Placeholder) is given to be on device 4"));
}

TEST(PlacerTest, ClassesColocate) {
  Scene s(devices(3, 1));
  Node* before = s.add("Identity", "before", {{s.source("x"), 0}}, "", colocated("a"));
  Node* a = s.value("a", "/CPU:2");
  Node* b = s.add("Identity", "b", {{s.source("y"), 0}}, "", colocated("a"));
  Node* c = s.add("Identity", "c", {{s.source("z"), 0}}, "", colocated("b"));
  Node* alone = s.add("Identity", "alone", {{a, 0}}, "", colocated("not there"));
  s.run();
  EXPECT_EQ(s.where(before), "CPU:2");
  EXPECT_EQ(s.where(b), "CPU:2");
  EXPECT_EQ(s.where(c), "CPU:2");
  EXPECT_EQ(s.where(alone), "GPU:0");
  EXPECT_EQ(s.placement.of(*c).reason, "colocated with 'a', which asked for /device:CPU:2");
}

TEST(PlacerTest, ColocationWithANodeForOneKindOfDevice) {
  Scene s(devices(1, 1));
  Node* text = s.value("text", "", string);
  Node* a = s.add("Identity", "a", {{s.source("x"), 0}}, "", colocated("text"));
  s.run();
  EXPECT_EQ(s.where(text), "CPU:0");
  EXPECT_EQ(s.where(a), "CPU:0");
  EXPECT_EQ(s.placement.of(*a).reason, "colocated with 'text'");
  EXPECT_THAT(s.placement.of(*a).refused,
              ElementsAre("GPU:0: takes or gives strings ('text', colocated)"));
}

TEST(PlacerTest, ContradictingColocationNamesBothSides) {
  Scene s(devices(2, 1));
  Node* a = s.value("a", "/CPU:1");
  Node* b = s.add("Identity", "b", {{s.source("x"), 0}}, "/GPU:0", colocated("a"));
  s.run();
  EXPECT_EQ(s.where(a), "GPU:0");  // as TensorFlow does: what both ask for becomes open
  EXPECT_EQ(s.where(b), "GPU:0");
  EXPECT_EQ(s.placement.of(*b).by, PlacedBy::kRequest);
  EXPECT_EQ(s.placement.of(*a).reason,
            "asked for /CPU:1, but it is colocated with 'b', which asked for /device:GPU:0");
  EXPECT_THAT(soft_placement_line(s.graph, s.placement),
              HasSubstr("'a' (Identity) asked for /CPU:1"));
  s.options.soft = false;
  EXPECT_EQ(s.failure(),
            "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge "
            "devices with incompatible types: '/device:GPU:0' and '/device:CPU:1'. 'b' (Identity) "
            "asked for '/device:GPU:0'; 'a' (Identity) asked for '/device:CPU:1'."
            "\n\t [[{{node b}}]]");
}

TEST(PlacerTest, ReasonsOfAContradictionReportWhatNothingGot) {
  Scene s(devices(2, 2));
  Node* a = s.value("a", "/GPU:1");
  Node* b = s.add("Identity", "b", {{s.source("x"), 0}}, "/CPU:1", colocated("a"));
  Node* c = s.add("Identity", "c", {{s.source("y"), 0}}, "", colocated("a"));
  s.run();
  ASSERT_EQ(s.where(a), "GPU:0");
  EXPECT_EQ(s.where(b), "GPU:0");
  EXPECT_EQ(s.where(c), "GPU:0");
  for (const Node* node : {a, b}) {
    EXPECT_EQ(s.placement.of(*node).by, PlacedBy::kSoft);
    EXPECT_THAT(s.placement.of(*node).reason, HasSubstr("nodes colocated with it ask for others"));
  }
  EXPECT_THAT(s.placement.of(*c).reason, HasSubstr("which could not have /device:"));
  EXPECT_THAT(soft_placement_line(s.graph, s.placement), HasSubstr("(and 1 more)"));
}

TEST(PlacerTest, ContradictingColocationOfResources) {
  Scene s(devices(3));
  s.variable("v", "/CPU:1");
  Node* w = s.add("VarHandleOp", "w", {}, "/CPU:2",
                  {{"dtype", float32},
                   {"shape", PartialShape(Shape{2})},
                   {"_class", std::vector<std::string>{"loc:@v"}}});
  s.run();  // soft: the request to colocate is ignored
  EXPECT_EQ(s.where(w), "CPU:2");
  s.options.soft = false;
  EXPECT_THAT(s.failure(), HasSubstr("Cannot merge devices with incompatible ids: '/device:CPU:2' "
                                     "and '/device:CPU:1'"));
}

TEST(PlacerTest, ColocationThatNoDeviceCanRun) {
  Scene s(devices(1, 1));
  s.devices.devices[0].without = {"Exp"};
  Node* text = s.value("text", "", string);
  Node* exp = s.add("Exp", "exp", {{s.source("x"), 0}}, "", colocated("text"));
  s.run();
  EXPECT_EQ(s.where(text), "CPU:0");
  EXPECT_EQ(s.where(exp), "GPU:0");
  s.options.soft = false;
  EXPECT_EQ(s.failure(),
            "Cannot colocate nodes {{colocation_node exp}} and {{colocation_node text}} because no "
            "device type supports both of those nodes and the other nodes colocated with them. "
            "'exp' (Exp) can't run on CPU:0: has no kernel for Exp; 'text' (Identity) can't run on "
            "GPU:0: takes or gives strings.\n\t [[{{node exp}}]]");
}

TEST(PlacerTest, AnOpWithoutAKernelBesideItsResource) {
  Scene s(devices(1, 1));
  s.options.soft = false;
  s.devices.devices[1].without = {"ReadVariableOp"};
  Node* v = s.variable("v", "/GPU:0");
  s.add("ReadVariableOp", "read", {{v, 0}}, "", {{"dtype", float32}});
  const std::string text = s.failure();
  EXPECT_THAT(
      text,
      HasSubstr(
          "Cannot assign a device for operation read: Could not satisfy explicit device "
          "specification '' because the node {{colocation_node read}} was colocated with a "
          "group of nodes that required incompatible device '/device:GPU:0'. All available "
          "devices [/job:localhost/replica:0/task:0/device:GPU:0, "
          "/job:localhost/replica:0/task:0/device:CPU:0]. Devices with kernels for the group: "
          "[/job:localhost/replica:0/task:0/device:CPU:0]. "));
  EXPECT_THAT(text, HasSubstr("\n  v (VarHandleOp) /GPU:0\n  read (ReadVariableOp) "));
}

TEST(PlacerTest, TheResourceMovesOnlyWithSoftPlacement) {
  Scene s(devices(1, 1));
  s.devices.devices[1].without = {"ReadVariableOp"};
  Node* v = s.variable("v", "/GPU:0");
  Node* read = s.add("ReadVariableOp", "read", {{v, 0}}, "", {{"dtype", float32}});
  s.run();
  EXPECT_EQ(s.where(v), "CPU:0");
  EXPECT_EQ(s.where(read), "CPU:0");
  EXPECT_EQ(s.placement.of(*v).by, PlacedBy::kSoft);
  EXPECT_EQ(s.placement.of(*v).reason,
            "asked for /GPU:0, but a node colocated with it can't be there");
}

TEST(PlacerTest, AGivenResourceStaysEvenWithSoftPlacement) {
  Scene s(devices(1, 1));
  s.devices.devices[1].without = {"ReadVariableOp"};
  Node* handle = s.add("_Arg", "handle", {}, "", {{"T", resource}, {"index", 0}});
  s.add("ReadVariableOp", "read", {{handle, 0}}, "/CPU:0", {{"dtype", float32}});
  s.options.fixed = {{handle, 1}};
  EXPECT_EQ(s.failure(),
            "Cannot assign a device for operation read: it uses handle, which lies on "
            "/job:localhost/replica:0/task:0/device:GPU:0, and there is no kernel for "
            "ReadVariableOp there. Devices with kernels for all that uses it: "
            "[/job:localhost/replica:0/task:0/device:CPU:0]. Make the resource on one of them, in "
            "a td::DeviceScope(\"CPU:0\").\n\t [[read]]");
}

// ---- Nodes that go with others ----

TEST(PlacerTest, ShapesGoWithTheirInput) {
  Scene s(devices(2, 1));
  Node* a = s.value("a", "/CPU:1");
  Node* shape = s.add("Shape", "shape", {{a, 0}});
  Node* asked = s.add("Shape", "asked", {{a, 0}}, "/CPU:0");
  s.run();
  EXPECT_EQ(s.where(shape), "CPU:1");
  EXPECT_EQ(s.placement.of(*shape).by, PlacedBy::kNear);
  EXPECT_EQ(s.placement.of(*shape).reason, "beside its input 'a'");
  EXPECT_EQ(s.where(asked), "CPU:0");
}

TEST(PlacerTest, SourcesGoWithTheirUsersIfThoseAreTogether) {
  Scene s(devices(3));
  Node* one = s.source("one");
  Node* several = s.source("several");
  Node* apart = s.source("apart");
  Node* argument = s.add("_Arg", "argument", {}, "", {{"T", float32}, {"index", 0}});
  Node* unused = s.source("unused");
  Node* control = s.source("control");
  Node* a = s.add("AddV2", "a", {{one, 0}, {several, 0}}, "/CPU:1");
  s.add("AddV2", "b", {{apart, 0}, {several, 0}}, "/CPU:1", {}, {control});
  s.add("AddV2", "c", {{apart, 0}, {a, 0}}, "/CPU:2");
  s.add("Identity", "d", {{argument, 0}}, "/CPU:2");
  s.run();
  EXPECT_EQ(s.where(one), "CPU:1");
  EXPECT_EQ(s.where(several), "CPU:1");
  EXPECT_EQ(s.where(apart), "CPU:0");
  EXPECT_EQ(s.where(argument), "CPU:2");
  EXPECT_EQ(s.where(unused), "CPU:0");
  EXPECT_EQ(s.where(control), "CPU:1");
  EXPECT_EQ(s.placement.of(*one).reason, "beside its user 'a'");
}

// ---- The log ----

TEST(PlacerTest, LogsEachNodeOnce) {
  Scene s(devices(2));
  s.value("a", "/CPU:1");
  s.options.log = true;
  ::testing::internal::CaptureStderr();
  s.run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "a: (Identity): /job:localhost/replica:0/task:0/device:CPU:1\n"
            "a_from: (Placeholder): /job:localhost/replica:0/task:0/device:CPU:1\n");
}

}  // namespace
}  // namespace tandem::placer_test
