#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

// In a process of its own, which may make `more` threads: whether `f` holds there.
void with_threads(std::size_t more, const std::function<bool()>& f) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [&] {
    numbers(range(20).map([](Tensor x) { return plus(x, 0); }));  // the runtime has its own
    if (getuid() == 0) {
      // For root there is no limit, and of other users there may be processes.
      constexpr uid_t kOtherUser = 61234;
      if (setuid(kOtherUser) != 0) std::_Exit(3);
    }
    const std::size_t all = more == 0 ? 0 : thread_count() + more;
    const rlimit limit{all, all};
    setrlimit(RLIMIT_NPROC, &limit);
    std::_Exit(f() ? 0 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

Dataset called(const Dataset& dataset, std::int64_t calls) {
  std::int64_t one = 1;  // not const: a constant would not be held
  return dataset.map([one](Tensor x) { return plus(x, one); }, {.num_parallel_calls = calls});
}

// One error that names the stage, and then the end; nothing where it is ignored.
bool fails(const std::string& stage, const Dataset& dataset) {
  const auto all = events(dataset, 5);
  const bool good = all.size() == 1 &&
                    all[0].find(stage + " cannot make a thread") != all[0].npos &&
                    all[0].find("Give the pipeline fewer threads") != all[0].npos &&
                    events(dataset.ignore_errors(), 5).empty();
  for (const std::string& event : all) std::fprintf(stderr, "%s\n", event.c_str());
  return good;
}

TEST(ThreadLimit, WithoutThreadsStagesSaySo) {
  with_threads(0, [] {
    const auto nested = [](const Tensor&) { return range(3); };
    return fails("prefetch", range(10).prefetch(2)) && fails("map", called(range(10), 3)) &&
           fails("map", called(range(10), kAutotune)) && fails("map", called(range(10), 100000)) &&
           fails("batch", range(10).batch(2, {.num_parallel_calls = 2})) &&
           fails("interleave", range(10).interleave(nested, {.num_parallel_calls = 2})) &&
           fails("prefetch", called(range(10), 2).repeat().prefetch(1));
  });
}

TEST(ThreadLimit, FewerDoAsWell) {
  // The limit is one of a user's processes: only as root can the test take a user of its own, whose
  // other threads nothing else makes. Elsewhere how many threads could be made is not known.
  if (getuid() != 0) {
    GTEST_SKIP() << "skipped: not root, and other processes of this user would count";
  }
  with_threads(3, [] {
    std::vector<std::int64_t> expected;
    for (int i = 1; i <= 50; ++i) expected.push_back(i);
    const auto nested = [](const Tensor& x) { return from_tensors(x); };
    return numbers(called(range(50), 16)) == expected &&
           numbers(called(range(50), kAutotune).prefetch(2)) == expected &&
           numbers(called(range(50), 16)
                       .interleave(nested, {.cycle_length = 1, .num_parallel_calls = 1})) ==
               expected &&
           numbers(range(50).interleave(nested, {.cycle_length = 8, .num_parallel_calls = 8}))
                   .size() == 50;
  });
}

}  // namespace
}  // namespace tandem::data
