// Queues and tables as TensorFlow 1 has them: handles are references to container and name.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct NamedHandles : testing::Test {
  Runtime runtime{{.inter_op_threads = 2, .intra_op_threads = 1}};
  RuntimeScope scope{runtime};

  static Output queue(FlowBuilder& b, const char* op, AttrMap attrs) {
    attrs.set("component_types", std::vector<DType>{int32});
    attrs.set("shapes", std::vector<PartialShape>{PartialShape::scalar()});
    attrs.set("shared_name", "queue");
    return {b.add(op, {}, attrs, {}, "q"), 0};
  }
  static Output fifo(FlowBuilder& b) { return queue(b, "FIFOQueue", {}); }
  static Output table(FlowBuilder& b, const char* op) {
    return {b.add(op, {}, {{"key_dtype", string}, {"value_dtype", int64}}, {}, "t"), 0};
  }
};

Array ints(std::vector<std::int32_t> values) { return Array::vector(values); }

TEST_F(NamedHandles, AQueueIsFoundByItsName) {
  FlowBuilder put;
  Node* node = put.add("QueueEnqueueMany", {fifo(put), put.constant(ints({5, 6, 7}))}, {});
  const FunctionRef putter = put.finish({put.constant(Array::scalar(1.0f))}, {node});
  run(putter, {});
  FlowBuilder take;
  const AttrMap types{{"component_types", std::vector<DType>{int32}}};
  const FunctionRef taker = take.finish({{take.add("QueueDequeue", {fifo(take)}, types), 0}});
  EXPECT_EQ(run(taker, {})[0].item<std::int32_t>(), 5);
  FlowBuilder many;
  const Output two = many.constant(Array::scalar(std::int32_t{2}));
  const FunctionRef pair =
      many.finish({{many.add("QueueDequeueMany", {fifo(many), two}, types), 0}});
  EXPECT_THAT(run(pair, {})[0].to_vector<std::int32_t>(), ElementsAre(6, 7));
  FlowBuilder size;
  EXPECT_EQ(run(size.finish({size.add1("QueueSize", {fifo(size)})}), {})[0].item<std::int32_t>(),
            0);
}

TEST_F(NamedHandles, BothKindsOfHandleNameTheSameQueue) {
  FlowBuilder first;
  Node* put = first.add("QueueEnqueue", {fifo(first), first.constant(Array::scalar(9))}, {});
  run(first.finish({first.constant(Array::scalar(1.0f))}, {put}), {});
  FlowBuilder second;
  const Output handle = queue(second, "FIFOQueueV2", {});
  EXPECT_EQ(run(second.finish({second.add1("QueueSizeV2", {handle})}), {})[0].item<std::int32_t>(),
            1);
}

TEST_F(NamedHandles, AHandleReadsAsContainerAndName) {
  FlowBuilder b;
  const auto names = run(b.finish({fifo(b)}), {})[0].to_vector<std::string>();
  EXPECT_THAT(names, ElementsAre("localhost", "queue"));
}

TEST_F(NamedHandles, ATableIsFoundByItsName) {
  FlowBuilder fill;
  const std::vector<std::string> words{"a", "b"};
  Node* node = fill.add("InitializeTable",
                        {table(fill, "HashTable"), fill.constant(Array::vector(words)),
                         fill.constant(Array::vector(std::vector<std::int64_t>{1, 2}))},
                        {});
  run(fill.finish({fill.constant(Array::scalar(1.0f))}, {node}), {});
  FlowBuilder find;
  const std::vector<std::string> asked{"b", "c"};
  const Output found =
      find.add1("LookupTableFind", {table(find, "HashTable"), find.constant(Array::vector(asked)),
                                    find.constant(Array::scalar(std::int64_t{-1}))});
  EXPECT_THAT(run(find.finish({found}), {})[0].to_vector<std::int64_t>(), ElementsAre(2, -1));
  FlowBuilder size;
  const Output count = size.add1("LookupTableSize", {table(size, "HashTable")});
  EXPECT_EQ(run(size.finish({count}), {})[0].item<std::int64_t>(), 2);
}

TEST_F(NamedHandles, AVariableIsNoQueue) {
  FlowBuilder b;
  const Output v{
      b.add("VariableV2", {}, {{"shape", PartialShape({2})}, {"dtype", string}}, {}, "v"), 0};
  const std::vector<std::string> names{"localhost", "nothing"};
  const Output set = b.add1("Assign", {v, b.constant(Array::vector(names))});
  const FunctionRef size = b.finish({b.add1("QueueSize", {set})});
  try {
    run(size, {});
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("The handle is no queue: it refers to nothing"));
  }
}

}  // namespace
}  // namespace tandem
