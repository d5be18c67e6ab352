#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/graph/local_collectives.h"

namespace tandem {
namespace {

Array floats(std::vector<float> values) { return Array::vector(values); }

std::vector<float> values_of(const Array& array) {
  const auto values = array.values<float>();
  return {values.begin(), values.end()};
}

// What a member got.
struct Got {
  Code code = Code::kUnknown;
  Array value;
  int calls = 0;
  Collectives::Done done() {
    return [this](const std::exception_ptr& error, Array result) {
      ++calls;
      code = error ? code_of(error) : Code::kOk;
      value = std::move(result);
    };
  }
};

TEST(Collectives, ReduceInOrderOfRankInWhateverOrderTheyCome) {
  LocalCollectives collectives;
  Got got[3];
  for (const int rank : {2, 0, 1}) {
    EXPECT_EQ(got[0].calls, 0);
    collectives.all_reduce({.key = "k", .group_size = 3, .rank = rank},
                           floats({static_cast<float>(rank), 1}), Collectives::Reduction::kMean,
                           got[rank].done());
  }
  for (const Got& g : got) {
    EXPECT_EQ(g.calls, 1);
    EXPECT_EQ(g.code, Code::kOk);
    EXPECT_EQ(values_of(g.value), (std::vector<float>{1, 1}));
  }
}

TEST(Collectives, GatherAndBroadcast) {
  LocalCollectives collectives;
  Got a, b;
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 1}, floats({3}), b.done());
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 0}, floats({1, 2}), a.done());
  EXPECT_EQ(values_of(a.value), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values_of(b.value), (std::vector<float>{1, 2, 3}));
  collectives.broadcast({.key = "k", .group_size = 2, .rank = 0}, Array(), a.done());
  collectives.broadcast({.key = "k", .group_size = 2, .rank = 1}, floats({7}), b.done());
  EXPECT_EQ(values_of(a.value), std::vector<float>{7});
  EXPECT_EQ(values_of(b.value), std::vector<float>{7});
}

template <class T>
std::vector<float> reduced(DType dtype, Collectives::Reduction reduction) {
  LocalCollectives collectives;
  Got got[3];
  for (int rank = 0; rank < 3; ++rank) {
    Array input(dtype, Shape{2});
    input.data<T>()[0] = T(static_cast<float>(rank + 1));
    input.data<T>()[1] = T(static_cast<float>(-2 * rank));
    collectives.all_reduce({.key = "k", .group_size = 3, .rank = rank}, input, reduction,
                           got[rank].done());
  }
  EXPECT_EQ(got[2].code, Code::kOk);
  const T* result = got[0].value.data<T>();
  return {static_cast<float>(result[0]), static_cast<float>(result[1])};
}

template <class T>
void expect_reductions(DType dtype) {
  EXPECT_EQ(reduced<T>(dtype, Collectives::Reduction::kSum), (std::vector<float>{6, -6}));
  EXPECT_EQ(reduced<T>(dtype, Collectives::Reduction::kMean), (std::vector<float>{2, -2}));
  EXPECT_EQ(reduced<T>(dtype, Collectives::Reduction::kProduct), (std::vector<float>{6, 0}));
  EXPECT_EQ(reduced<T>(dtype, Collectives::Reduction::kMax), (std::vector<float>{3, 0}));
  EXPECT_EQ(reduced<T>(dtype, Collectives::Reduction::kMin), (std::vector<float>{1, -4}));
}

TEST(Collectives, ReduceEveryDtype) {
  expect_reductions<float>(DType::kFloat);
  expect_reductions<double>(DType::kDouble);
  expect_reductions<Half>(DType::kHalf);
  expect_reductions<BFloat16>(DType::kBFloat16);
  expect_reductions<std::int32_t>(DType::kInt32);
  expect_reductions<std::int64_t>(DType::kInt64);
}

TEST(Collectives, AResultIsMemoryOfItsOwn) {
  LocalCollectives collectives;
  const Array input = floats({1});
  Got a, b;
  collectives.broadcast({.key = "k", .group_size = 1, .rank = 0}, input, a.done());
  collectives.all_reduce({.key = "k", .group_size = 1, .rank = 0}, input,
                         Collectives::Reduction::kSum, b.done());
  EXPECT_NE(a.value.raw_data(), input.raw_data());
  EXPECT_NE(b.value.raw_data(), input.raw_data());
}

TEST(Collectives, ABroadcastHasOneThatSends) {
  LocalCollectives collectives;
  Got a, b;
  collectives.broadcast({.key = "k", .group_size = 2, .rank = 0}, floats({1}), a.done());
  collectives.broadcast({.key = "k", .group_size = 2, .rank = 1}, floats({7}), b.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
  EXPECT_EQ(b.code, Code::kInvalidArgument);
}

TEST(Collectives, ARankComesOnce) {
  LocalCollectives collectives;
  Got a, b;
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 0}, floats({1}), a.done());
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 0}, floats({1}), b.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
  EXPECT_EQ(b.code, Code::kInvalidArgument);
}

TEST(Collectives, OthersComeInTimeOrAllFail) {
  LocalCollectives collectives;
  std::promise<Code> ended;
  collectives.all_gather(
      {.key = "k", .group_size = 2, .rank = 0, .timeout = std::chrono::duration<double>(1e-3)},
      floats({1}), [&](const std::exception_ptr& error, const Array&) {
        ended.set_value(error ? code_of(error) : Code::kOk);
      });
  EXPECT_EQ(ended.get_future().get(), Code::kDeadlineExceeded);
}

TEST(Collectives, EndWithWhatTheyBelongTo) {
  LocalCollectives collectives;
  Got before, after;
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 0}, floats({1}), before.done());
  collectives.start_abort(std::make_exception_ptr(NotFoundError("gone")));
  EXPECT_EQ(before.code, Code::kNotFound);
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 1}, floats({1}), after.done());
  EXPECT_EQ(after.code, Code::kNotFound);
}

TEST(Collectives, MembersThatDifferFailAll) {
  LocalCollectives collectives;
  Got a, b;
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 0}, floats({1}),
                         Collectives::Reduction::kSum, a.done());
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 1}, floats({1}),
                         Collectives::Reduction::kMax, b.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
  EXPECT_EQ(b.code, Code::kInvalidArgument);
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 0}, floats({1}),
                         Collectives::Reduction::kSum, a.done());
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 1}, floats({1, 2}),
                         Collectives::Reduction::kSum, b.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
  EXPECT_EQ(b.code, Code::kInvalidArgument);
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 2}, floats({1}), a.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
}

TEST(Collectives, ACancelledMemberFailsAll) {
  LocalCollectives collectives;
  Got a, b;
  Cancellation stop;
  collectives.all_gather({.key = "k", .group_size = 3, .rank = 0}, floats({1}), a.done());
  collectives.all_gather({.key = "k", .group_size = 3, .rank = 1, .cancellation = &stop},
                         floats({1}), b.done());
  EXPECT_EQ(a.calls, 0);
  stop.cancel();
  EXPECT_EQ(a.code, Code::kCancelled);
  EXPECT_EQ(b.code, Code::kCancelled);
  EXPECT_EQ(a.calls + b.calls, 2);
}

}  // namespace
}  // namespace tandem
