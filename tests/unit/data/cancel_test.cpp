#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/data/file_datasets.h"
#include "tandem/fs/file_system.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::int64_t kEndless = std::int64_t{1} << 60;

class Cancel : public ::testing::Test {
 protected:
  // The thread that watches has ended before other tests count threads.
  static void TearDownTestSuite() { std::this_thread::sleep_for(300ms); }
};

// Iterates on a thread under a cancellation, which comes while it works; returns what was thrown.
std::string cancelled(const Dataset& dataset) {
  const auto stop = std::make_shared<Cancellation>();
  std::atomic<bool> begun{false};
  auto result = std::async(std::launch::async, [&]() -> std::string {
    const CancellationScope scope(stop);
    auto it = dataset.iterator();
    begun = true;
    try {
      Element element;
      while (it.next(element)) {
      }
    } catch (const CancelledError& error) {
      // It is over for good.
      EXPECT_THROW(it.next(), CancelledError);
      EXPECT_THROW(it.save(), CancelledError);
      return error.what();
    }
    return "it ended";
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(30ms);
  EXPECT_EQ(result.wait_for(0s), std::future_status::timeout) << "it did not wait";
  const auto before = std::chrono::steady_clock::now();
  stop->cancel();
  // Generous: the machine may be busy. It would never end by itself.
  if (result.wait_for(30s) != std::future_status::ready) {
    std::fprintf(stderr, "It does not end although it was cancelled.\n");
    std::_Exit(1);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
  return result.get();
}

TEST_F(Cancel, ReachesEveryStage) {
  const auto never = [](const Tensor& x) { return x.item<std::int64_t>() < 0; };
  std::int64_t mark = 3;  // not const: a constant would not be held
  const auto called = [mark](Tensor x) { return plus(x, mark); };
  const auto slow = [mark](Tensor x) {  // called too: it holds something
    std::this_thread::sleep_for(5ms);
    return plus(x, mark);
  };
  const Dataset all = range(kEndless);
  const Dataset rows = from_tensor_slices(Tensor::from(upto(100))).repeat();
  const auto rows_of = [rows](const Tensor&) { return rows; };
  const auto nothing = [all](const Tensor&) {
    return all.filter([](const Tensor& x) { return x.item<std::int64_t>() < 0; });
  };
  const std::vector<std::pair<std::string, Dataset>> pipelines = {
      {"filter", all.filter(never)},
      {"filter, of rows", rows.filter(never)},
      {"filter, traced", all.filter([](Tensor x) { return (x + 1) * 2 - x < 0; })},
      {"filter behind a thread", all.filter(never).prefetch(2)},
      {"map, filter", all.map([](Tensor x) { return x * 2; }).filter([](Tensor x) {
         return (x + 1) * 2 - x < 0;
       })},
      {"parallel map, filter", all.map(called, {.num_parallel_calls = 2}).filter(never)},
      {"parallel map", all.filter(never).map(called, {.num_parallel_calls = 2})},
      {"parallel map, large batch", all.map(slow, {.num_parallel_calls = 2}).batch(100000)},
      {"large batch", all.map(slow).batch(100000)},
      {"large batch, called", all.map(called).batch(1 << 30)},
      {"large batch, traced", all.map([](Tensor x) { return reshape(x, {1}); }).batch(1 << 30)},
      {"large batch, of rows", rows.batch(1 << 30)},
      {"parallel batch", all.map(slow).batch(100000, {.num_parallel_calls = 2})},
      {"padded batch", all.map(slow).padded_batch(100000)},
      {"rebatch", all.map(slow).batch(1).rebatch(100000)},
      {"unbatch", all.map([](Tensor) { return Tensor(Array(DType::kInt64, Shape{0})); }).unbatch()},
      {"shuffle", all.map(slow).shuffle(1000000)},
      {"shuffle and repeat", all.map(slow).shuffle(1000000).repeat()},
      {"shard", rows.shard(kEndless, kEndless - 1)},
      {"window", all.map(slow).window(100000)},
      {"skip", all.map(called).skip(kEndless / 2)},
      {"take_while", all.take_while([](const Tensor&) { return true; })},
      {"flat_map", all.flat_map(nothing)},
      {"interleave", all.interleave(rows_of, {.cycle_length = 3}).filter(never)},
      {"parallel interleave",
       all.interleave(nothing, {.cycle_length = 3, .num_parallel_calls = 2})},
      {"ignore_errors", all.map([](const Tensor& x) -> Tensor {
                             if (x.rank() == 0) throw InvalidArgumentError("no");
                             return x;
                           })
                            .ignore_errors()},
      {"zip", zip({all, all.filter(never).prefetch(1)})},
      {"several", all.map(called, {.num_parallel_calls = 2})
                      .filter(never)
                      .prefetch(1)
                      .shuffle(10)
                      .batch(10)
                      .prefetch(kAutotune)},
  };
  for (const auto& [name, pipeline] : pipelines) {
    SCOPED_TRACE(name);
    EXPECT_THAT(cancelled(pipeline), HasSubstr("ancelled"));
    EXPECT_THAT(cancelled(unfused(pipeline)), HasSubstr("ancelled"));
  }
}

TEST_F(Cancel, ReachesStagesThatGiveNothing) {
  const Folder folder;
  const auto never = [](const Tensor& x) { return x.item<std::int64_t>() < 0; };
  const auto third = [](const Tensor& x) { return x.item<std::int64_t>() % 3; };
  const auto joined = [](std::int64_t, const Dataset& window) { return window.batch(4); };
  const Dataset all = range(kEndless);
  // Zeros, which begin no record and end no line; they take no room on the disk.
  const std::string zeros = folder.file("zeros"), empty = folder.file("empty");
  fs::write_file(zeros, "");
  fs::write_file(empty, "");
  std::filesystem::resize_file(zeros, std::uintmax_t{1} << 38);
  TFRecordOptions skipping;
  skipping.skip_corrupt = true;
  CsvOptions csv;
  csv.max_record_bytes = 1 << 20;
  const FileOptions lines{.max_record_bytes = 1 << 20};
  const Dataset empties = from_tensors(Tensor(empty)).repeat();
  const Dataset no_names = from_tensors(Tensor(Array(DType::kString, Shape{0}))).repeat();
  const std::vector<std::pair<std::string, Dataset>> pipelines = {
      {"unique", all.map([](Tensor x) { return x * 0; }).unique()},
      {"group_by_window", all.group_by_window(third, joined, kEndless)},
      {"group_by_window, of nothing",
       all.group_by_window(
           third, [](std::int64_t, const Dataset&) { return range(0); }, 2)},
      {"bucket",
       all.bucket_by_sequence_length([](const Tensor&) { return 1; }, {3}, {kEndless, kEndless})},
      {"scan",
       all.scan({Tensor(std::int64_t{0})}, [](Tensor s, Tensor x) { return std::pair(s, x); })
           .filter(never)},
      {"choose", choose_from_datasets({all.filter(never), all}, range(2).repeat())},
      {"choose, of one that has ended",
       choose_from_datasets({range(0), all}, from_tensors(Tensor(std::int64_t{0})).repeat(),
                            false)},
      {"sample", sample_from_datasets({all.filter(never), all.filter(never)})},
      {"cache", all.cache().filter(never)},
      {"file cache", all.cache(folder.file("cache")).filter(never)},
      {"snapshot", all.snapshot(folder.file("snapshot")).filter(never)},
      {"records, damaged", TFRecordDataset(zeros, skipping)},
      {"records, damaged, several files",
       [&] {
         TFRecordOptions options = skipping;
         options.num_parallel_reads = 2;
         return TFRecordDataset({zeros, zeros}, options);
       }()},
      {"CSV", CsvDataset(zeros, {string}, csv).ignore_errors()},
      {"lines", TextLineDataset(zeros, lines).ignore_errors()},
      {"files without elements", TextLineDataset(empties)},
      {"files without elements, several", TextLineDataset(empties, {.num_parallel_reads = 2})},
      {"no files", TextLineDataset(no_names)},
      {"prefetch_to_device", all.filter(never).prefetch_to_device("CPU:0")},
  };
  for (const auto& [name, pipeline] : pipelines) {
    SCOPED_TRACE(name);
    EXPECT_THAT(cancelled(pipeline), HasSubstr("ancelled"));
    EXPECT_THAT(cancelled(pipeline.prefetch(2)), HasSubstr("ancelled"));
  }
}

TEST_F(Cancel, BeforeAnElementIsAskedFor) {
  const auto stop = std::make_shared<Cancellation>();
  auto it = range(5).batch(2).iterator();
  it.next();
  {
    const CancellationScope scope(stop);
    it.next();
    stop->cancel();
    EXPECT_THROW(it.next(), CancelledError);
  }
  EXPECT_THAT(message_of_thrown<CancelledError>([&] { it.next(); }), HasSubstr("Begin another"));
  auto over = range(1).iterator();
  EXPECT_EQ(numbers(over), upto(1));
  const CancellationScope scope(stop);
  Element end;
  EXPECT_FALSE(over.next(end));  // nothing is left to cancel
  EXPECT_THROW(numbers(range(3)), CancelledError);
}

TEST_F(Cancel, OfTheBeginningStopsOtherConsumers) {
  const auto stop = std::make_shared<Cancellation>();
  std::optional<Iterator> it;
  {
    const CancellationScope scope(stop);
    it.emplace(range(kEndless).prefetch(2).iterator());
  }
  EXPECT_EQ(numbers(*it, 2), upto(2));
  stop->cancel();
  Element element;
  EXPECT_THROW(
      {
        for (;;) it->next(element);
      },
      CancelledError);
}

// A tape, or a function that is being traced, keeps the pipeline's own work from its caller's.
TEST_F(Cancel, UnderAGradientTape) {
  const auto stop = std::make_shared<Cancellation>();
  const auto never = [](const Tensor& x) { return x.item<std::int64_t>() < 0; };
  auto it = range(kEndless).filter(never).iterator();
  auto result = std::async(std::launch::async, [&] {
    const CancellationScope scope(stop);
    const GradientTape tape;
    EXPECT_THROW(it.next(), CancelledError);
  });
  stop->cancel();
  if (result.wait_for(30s) != std::future_status::ready) {
    std::fprintf(stderr, "It does not end although it was cancelled.\n");
    std::_Exit(1);
  }
  result.get();
}

TEST_F(Cancel, OfAConsumerThatLeftDoesNothing) {
  auto it = range(kEndless).prefetch(2).iterator();
  const auto stop = std::make_shared<Cancellation>();
  {
    const CancellationScope scope(stop);
    EXPECT_EQ(it.next()[0].item<std::int64_t>(), 0);
  }
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 1);
  stop->cancel();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 2);
}

TEST_F(Cancel, AnIterationMayBeRestored) {
  const auto stop = std::make_shared<Cancellation>();
  const auto pipeline = range(20).shuffle(5, {.seed = 1}).batch(3).prefetch(2);
  auto it = pipeline.iterator();
  it.next();
  const std::string state = it.save();
  const auto expected = rest(it);
  {
    const CancellationScope scope(stop);
    auto other = pipeline.iterator();
    other.next();
    stop->cancel();
    EXPECT_THROW(other.next(), CancelledError);
    it = std::move(other);
  }
  it.restore(state);
  EXPECT_EQ(rest(it), expected);
}

// What restoring opens looks to the same cancellation, which need not wait.
TEST_F(Cancel, WhileAStateIsRestored) {
  const auto inside = std::make_shared<std::promise<void>>();
  const auto restoring = std::make_shared<std::atomic<bool>>(false);
  const auto open = [=](const Tensor&) {
    if (restoring->exchange(false)) {
      inside->set_value();
      std::this_thread::sleep_for(100ms);
    }
    return range(100).prefetch(2);
  };
  const Dataset pipeline = range(8).interleave(open, {.cycle_length = 2, .num_parallel_calls = 2});
  auto it = pipeline.iterator();
  for (int i = 0; i < 3; ++i) it.next();
  const std::string state = it.save();
  const auto stop = std::make_shared<Cancellation>();
  auto result = std::async(std::launch::async, [&] {
    const CancellationScope scope(stop);
    auto other = pipeline.iterator();
    *restoring = true;
    other.restore(state);
    EXPECT_THROW(rest(other), CancelledError);
  });
  inside->get_future().wait();
  stop->cancel();
  if (result.wait_for(30s) != std::future_status::ready) {
    std::fprintf(stderr, "It does not end although it was cancelled.\n");
    std::_Exit(1);
  }
  result.get();
}

TEST_F(Cancel, LeavesNoHalfCache) {
  const auto stop = std::make_shared<Cancellation>();
  const auto kept = range(50)
                        .map(
                            [](Tensor x) {
                              std::this_thread::sleep_for(5ms);
                              return x;
                            },
                            {.num_parallel_calls = 2, .traced = false})
                        .cache();
  auto result = std::async(std::launch::async, [&] {
    const CancellationScope scope(stop);
    EXPECT_THROW(numbers(kept), CancelledError);
  });
  std::this_thread::sleep_for(30ms);
  stop->cancel();
  result.get();
  EXPECT_EQ(numbers(kept), upto(50));
}

}  // namespace
}  // namespace tandem::data
