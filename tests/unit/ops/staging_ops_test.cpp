// Staging areas beyond what graphs of TensorFlow show: waiting, cancelling, limits, refusals.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::HasSubstr;

struct StagingOps : testing::Test {
  Runtime runtime{Runtime::Options{1, 1}};
  RuntimeScope scope{runtime};
  AttrMap attrs{{"shared_name", "area"}, {"dtypes", std::vector<DType>{int32}}};

  void put(int value) const { raw_op("Stage", {Tensor(value)}, attrs); }
  int take() const { return raw_op("Unstage", {}, attrs)[0].item<std::int32_t>(); }
  int peek(int i) const { return raw_op("StagePeek", {Tensor(i)}, attrs)[0].item<std::int32_t>(); }
  int size() const { return raw_op("StageSize", {}, attrs)[0].item<std::int32_t>(); }
};

TEST_F(StagingOps, TakersWaitAndLookersToo) {
  int taken = 0, seen = 0;
  std::thread waiting([&] {
    const RuntimeScope inner(runtime);
    seen = peek(1);
    taken = take();
  });
  put(1);
  put(2);
  waiting.join();
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(size(), 1);
}

TEST_F(StagingOps, AFullAreaMakesPutsWait) {
  for (const char* limit : {"capacity", "memory_limit"}) {
    attrs.set("shared_name", limit);
    attrs.set(limit, std::string(limit) == "capacity" ? 2 : 8);
    std::thread producer([&] {
      const RuntimeScope inner(runtime);
      for (int i = 0; i < 6; ++i) put(i);
    });
    for (int i = 0; i < 6; ++i) {
      EXPECT_LE(size(), 2);
      EXPECT_EQ(take(), i);
    }
    producer.join();
  }
}

TEST_F(StagingOps, WhatCouldNeverFitIsRefused) {
  attrs.set("memory_limit", 3);
  try {
    put(1);
    ADD_FAILURE() << "four bytes in an area of three";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'4' bytes into Staging Area with a memory limit of '3'"));
  }
}

TEST_F(StagingOps, OtherTypesAreRefused) {
  put(1);
  EXPECT_THROW(peek(-1), InvalidArgumentError);
  attrs.set("dtypes", std::vector<DType>{int32, int32});
  EXPECT_THROW(peek(0), InvalidArgumentError);
  attrs.set("dtypes", std::vector<DType>{float32});
  EXPECT_THROW(take(), InvalidArgumentError);
}

TEST_F(StagingOps, WaitingEndsWhenItIsCancelled) {
  const auto stop = std::make_shared<Cancellation>();
  std::thread waiting([&] {
    const RuntimeScope inner(runtime);
    const CancellationScope cancellable(stop);
    EXPECT_THROW(take(), CancelledError);
  });
  stop->cancel();
  waiting.join();
  put(7);
  EXPECT_EQ(size(), 1) << "nothing waits any more";
}

}  // namespace
}  // namespace tandem
