// Queues, through their ops; and that waiting for one holds no thread.

#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAreArray;
using Ints = std::vector<std::int32_t>;

// A queue of int32 scalars that nothing else has.
Tensor queue(const char* op, AttrMap attrs = {}) {
  attrs.set("component_types", std::vector<DType>{int32});
  if (attrs.find("shapes") == nullptr) {
    attrs.set("shapes", std::vector<PartialShape>{PartialShape::scalar()});
  }
  attrs.set("shared_name", "cd2c89b7-88b7-44c8-ad83-06c2a9158347");
  return raw_op(op, {}, attrs)[0];
}

const AttrMap kInts = {{"component_types", std::vector<DType>{int32}}};

void put(const Tensor& q, const Tensor& value) { raw_op("QueueEnqueueV2", {q, value}); }
void put_many(const Tensor& q, const Tensor& values) { raw_op("QueueEnqueueManyV2", {q, values}); }
std::int32_t take(const Tensor& q) {
  return raw_op("QueueDequeueV2", {q}, kInts)[0].item<std::int32_t>();
}
Tensor take_many(const Tensor& q, int n) { return raw_op("QueueDequeueManyV2", {q, n}, kInts)[0]; }
Tensor take_up_to(const Tensor& q, int n) { return raw_op("QueueDequeueUpToV2", {q, n}, kInts)[0]; }
int size(const Tensor& q) { return raw_op("QueueSizeV2", {q})[0].item<std::int32_t>(); }
void close(const Tensor& q, bool cancel = false) {
  raw_op("QueueCloseV2", {q}, {{"cancel_pending_enqueues", cancel}});
}

TEST(QueueOps, FirstInFirstOut) {
  const Tensor q = queue("FIFOQueueV2");
  put(q, 1);
  put_many(q, Tensor{2, 3, 4});
  EXPECT_EQ(size(q), 4);
  EXPECT_EQ(take(q), 1);
  EXPECT_THAT(take_many(q, 2).to_vector<std::int32_t>(), ElementsAre(2, 3));
  EXPECT_EQ(take(q), 4);
  EXPECT_EQ(take_many(q, 0).shape(), Shape({0}));
}

TEST(QueueOps, AClosedQueueGivesWhatItHas) {
  const Tensor q = queue("FIFOQueueV2");
  put_many(q, Tensor{1, 2, 3, 4});
  EXPECT_FALSE(raw_op("QueueIsClosedV2", {q})[0].item<bool>());
  close(q);
  EXPECT_TRUE(raw_op("QueueIsClosedV2", {q})[0].item<bool>());
  EXPECT_THROW(put(q, 5), CancelledError);
  EXPECT_EQ(take(q), 1);
  EXPECT_THROW(take_many(q, 4), OutOfRangeError);
  EXPECT_EQ(size(q), 3) << "what a failed request had taken is back";
  EXPECT_THAT(take_up_to(q, 9).to_vector<std::int32_t>(), ElementsAre(2, 3, 4));
  EXPECT_THROW(take_up_to(q, 1), OutOfRangeError);
  EXPECT_THROW(take(q), OutOfRangeError);
}

TEST(QueueOps, WrongElementsAreRefused) {
  const Tensor q = queue("FIFOQueueV2");
  EXPECT_THROW(put(q, Tensor(1.0)), InvalidArgumentError);
  EXPECT_THROW(put(q, Tensor{1, 2}), InvalidArgumentError);
  EXPECT_THROW(raw_op("QueueEnqueueV2", {q, Tensor(1), Tensor(2)}), InvalidArgumentError);
  EXPECT_THROW(put_many(q, Tensor(1)), InvalidArgumentError);
  EXPECT_THROW(take_many(q, -1), InvalidArgumentError);
  EXPECT_THROW(raw_op("QueueDequeueV2", {q}, {{"component_types", std::vector<DType>{float32}}}),
               InvalidArgumentError);
  const Tensor shapeless = queue("FIFOQueueV2", {{"shapes", std::vector<PartialShape>{}}});
  put(shapeless, Tensor{1, 2});
  EXPECT_THROW(take_many(shapeless, 1), InvalidArgumentError);
}

TEST(QueueOps, BatchesArePadded) {
  const Tensor q =
      queue("PaddingFIFOQueueV2", {{"shapes", std::vector<PartialShape>{PartialShape({-1})}}});
  put(q, Tensor{1, 2, 3});
  put(q, Tensor{4});
  const Tensor batch = take_many(q, 2);
  EXPECT_EQ(batch.shape(), Shape({2, 3}));
  EXPECT_THAT(batch.to_vector<std::int32_t>(), ElementsAre(1, 2, 3, 4, 0, 0));
}

TEST(QueueOps, RandomOrderFollowsFromTheSeeds) {
  Ints numbers(50);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto shuffled = [&] {
    const Tensor q = queue("RandomShuffleQueueV2", {{"seed", 3}, {"seed2", 4}});
    put_many(q, tensor(numbers));
    return take_many(q, 50).to_vector<std::int32_t>();
  };
  const Ints first = shuffled();
  EXPECT_THAT(first, UnorderedElementsAreArray(numbers));
  EXPECT_NE(first, numbers);
  EXPECT_EQ(first, shuffled());
}

TEST(QueueOps, ShuffledElementsStayUntilItCloses) {
  const Tensor q = queue("RandomShuffleQueueV2", {{"min_after_dequeue", 2}, {"capacity", 10}});
  put_many(q, Tensor{1, 2, 3});
  take(q);
  std::atomic<bool> got{false};
  std::thread waiting([&] {
    take(q);
    got = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(got);
  close(q);
  waiting.join();
  EXPECT_EQ(size(q), 1);
}

TEST(QueueOps, SmallestPriorityFirst) {
  const Tensor q = queue("PriorityQueueV2");
  const auto put_at = [&](std::int64_t priority, int value) {
    raw_op("QueueEnqueueV2", {q, scalar(priority), Tensor(value)});
  };
  put_at(5, 50);
  put_at(1, 10);
  put_at(5, 51);
  put_at(-2, 20);
  Ints order;
  for (int i = 0; i < 4; ++i) {
    order.push_back(
        raw_op("QueueDequeueV2", {q}, {{"component_types", std::vector<DType>{int64, int32}}})[1]
            .item<std::int32_t>());
  }
  EXPECT_THAT(order, ElementsAre(20, 10, 50, 51));
}

// A heap's order for equal priorities, and no rest of a closed queue: as in TensorFlow.
TEST(QueueOps, EqualPriorities) {
  const Tensor q = queue("PriorityQueueV2");
  const AttrMap types{{"component_types", std::vector<DType>{int64, int32}}};
  for (int value = 1; value <= 7; ++value) {
    raw_op("QueueEnqueueV2", {q, scalar(std::int64_t{5}), Tensor(value)});
  }
  EXPECT_THAT(raw_op("QueueDequeueManyV2", {q, 4}, types)[1].to_vector<std::int32_t>(),
              ElementsAre(1, 3, 6, 7));
  raw_op("QueueCloseV2", {q});
  EXPECT_THROW(raw_op("QueueDequeueUpToV2", {q, 4}, types), OutOfRangeError);
  EXPECT_EQ(raw_op("QueueDequeueUpToV2", {q, 3}, types)[1].num_elements(), 3);
}

TEST(QueueOps, AFullQueueMakesItsProducersWait) {
  const Tensor q = queue("FIFOQueueV2", {{"capacity", 2}});
  std::thread producer([&] { put_many(q, Tensor{1, 2, 3, 4, 5}); });
  Ints got;
  for (int i = 0; i < 5; ++i) got.push_back(take(q));
  producer.join();
  EXPECT_THAT(got, ElementsAre(1, 2, 3, 4, 5));
}

TEST(QueueOps, ClosingMayCancelWaitingProducers) {
  const Tensor q = queue("FIFOQueueV2", {{"capacity", 1}});
  put(q, 1);
  std::thread producer([&] { EXPECT_THROW(put(q, 2), CancelledError); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  close(q, true);
  producer.join();
  EXPECT_EQ(take(q), 1);
}

// Both sides are nodes of one graph that nothing orders; a single thread runs it.
TEST(QueueOps, WaitingHoldsNoThread) {
  Runtime runtime(Runtime::Options{1, 1});
  const RuntimeScope scope(runtime);
  const Tensor q = queue("FIFOQueueV2", {{"capacity", 1}});
  const ConcreteFunction consume =
      trace_function("consume", {int32}, {PartialShape::scalar()}, [&](std::span<const Tensor> n) {
        return std::vector<Tensor>{raw_op("QueueDequeueManyV2", {q, n[0]},
                                          {{"component_types", std::vector<DType>{int32}}})[0]};
      });
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) put(q, i);
  });
  const std::vector<Tensor> all = consume.call(std::vector<Tensor>{Tensor(100)});
  producer.join();
  const auto values = all[0].to_vector<std::int32_t>();
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 4950);
}

}  // namespace
}  // namespace tandem
