// How a machine chooses among implementations of a kernel: by measuring them once.

#include "tandem/kernels/cpu/support/kernel_tuner.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/folder.h"

namespace {

using tandem::cpu::KernelTuner;
using tandem::cpu::MeasuredChoices;
using tandem::cpu::Problem;
using tandem::cpu::ProblemClass;
using ::testing::HasSubstr;

constexpr const char* kNames[] = {"plain", "vectors", "library"};
constexpr const char* kMachine = "a processor; a library 1.0";

// Candidates that take so long on a clock of their own; negative: cannot run.
struct Candidates {
  std::vector<double> seconds;
  double clock = 0;
  int runs = 0;

  KernelTuner::Options options(const std::string& folder = "") {
    KernelTuner::Options options;
    options.folder = folder;
    options.machine = kMachine;
    options.now = [this] { return clock; };
    return options;
  }
  std::function<bool(int)> run() {
    return [this](int i) {
      ++runs;
      const double time = seconds[static_cast<std::size_t>(i)];
      if (time < 0) return false;
      clock += time;
      return true;
    };
  }
};

ProblemClass product(std::int64_t size, int threads = 2) {
  return {Problem::kMatMul, tandem::DType::kBFloat16, 0, threads, {size, size, size, 1}};
}

TEST(KernelTuner, ChoosesTheFastestCandidateOnceForAClass) {
  Candidates c{{3e-3, 2e-3, 1e-3}};
  KernelTuner tuner(c.options());
  EXPECT_EQ(tuner.known(product(512)), -1);
  EXPECT_EQ(tuner.choose(product(512), kNames, 0, c.run()), 2);
  EXPECT_EQ(tuner.known(product(512)), 2);
  // 1000 is of the class of 512; it is not measured again.
  const int runs = c.runs;
  EXPECT_EQ(tuner.choose(product(1000), kNames, 0, c.run()), 2);
  EXPECT_EQ(c.runs, runs);
  // Other sizes, and other numbers of threads, are other classes.
  c.seconds = {1e-3, 2e-3, 3e-3};
  EXPECT_EQ(tuner.choose(product(1024), kNames, 2, c.run()), 0);
  EXPECT_EQ(tuner.choose(product(512, 1), kNames, 2, c.run()), 0);
  EXPECT_EQ(tuner.known(product(512)), 2);
}

TEST(KernelTuner, KeepsTheAssumedCandidateUnlessAnotherIsClearlyFaster) {
  Candidates c{{1.01e-3, 1.0e-3, 5e-3}};
  KernelTuner tuner(c.options());
  EXPECT_EQ(tuner.choose(product(64), kNames, 0, c.run()), 0);
  c.seconds = {1.05e-3, 1.0e-3, 5e-3};
  EXPECT_EQ(tuner.choose(product(128), kNames, 0, c.run()), 1);
}

TEST(KernelTuner, NeverChoosesACandidateThatCannotRun) {
  Candidates c{{-1, 2e-3, -1}};
  KernelTuner tuner(c.options());
  EXPECT_EQ(tuner.choose(product(64), kNames, 0, c.run()), 1);
  const auto shown = tuner.describe(product(64), kNames, 0);
  EXPECT_EQ(shown.chosen, "vectors");
  EXPECT_EQ(shown.candidates[0].refused, "cannot run this case");
  EXPECT_DOUBLE_EQ(shown.candidates[1].seconds, 2e-3);
}

TEST(KernelTuner, LaterProcessesReadWhatWasMeasured) {
  const tandem::Folder folder;
  Candidates c{{3e-3, 1e-3, 2e-3}};
  KernelTuner(c.options(folder.file("cache"))).choose(product(512), kNames, 0, c.run());
  Candidates later{{1e-3, 1e-3, 1e-3}};
  KernelTuner tuner(later.options(folder.file("cache")));
  EXPECT_EQ(tuner.choose(product(512), kNames, 0, later.run()), 1);
  EXPECT_EQ(later.runs, 0);
  const auto shown = tuner.describe(product(512), kNames, 0);
  EXPECT_EQ(shown.problem, "matmul bfloat16 nn 512+ x 512+ x 512+ x 1");
  EXPECT_EQ(shown.threads, 2);
  EXPECT_THAT(shown.reason, HasSubstr("fastest of 3 measured with 2 threads"));
}

TEST(KernelTuner, WhatTwoProcessesMeasureIsKeptByBoth) {
  const tandem::Folder folder;
  Candidates a{{3e-3, 1e-3, 2e-3}}, b{{3e-3, 2e-3, 1e-3}};
  KernelTuner first(a.options(folder.file("cache"))), second(b.options(folder.file("cache")));
  first.choose(product(64), kNames, 0, a.run());
  second.choose(product(64), kNames, 0, b.run());  // has not read the file: measures itself
  second.choose(product(128), kNames, 0, b.run());
  first.choose(product(256), kNames, 0, a.run());
  Candidates later{{1, 1, 1}};
  KernelTuner third(later.options(folder.file("cache")));
  EXPECT_EQ(third.choose(product(64), kNames, 0, later.run()), 1);
  EXPECT_EQ(third.choose(product(128), kNames, 0, later.run()), 2);
  EXPECT_EQ(third.choose(product(256), kNames, 0, later.run()), 1);
  EXPECT_EQ(later.runs, 0);
}

TEST(KernelTuner, MeasuresAgainWhereTheFileIsDamagedOrOfOtherCandidates) {
  const tandem::Folder folder;
  Candidates c{{3e-3, 1e-3, 2e-3}};
  std::filesystem::create_directories(folder.file("cache"));
  const std::string path = tandem::cpu::choices_path(folder.file("cache"), kMachine);
  tandem::fs::write_file(path, "tandem kernel choices 1\nmachine\tto");
  testing::internal::CaptureStderr();
  KernelTuner tuner(c.options(folder.file("cache")));
  EXPECT_EQ(tuner.choose(product(512), kNames, 0, c.run()), 1);
  EXPECT_EQ(tuner.choose(product(64), kNames, 0, c.run()), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(path));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  // The file is whole again.
  EXPECT_EQ(tandem::cpu::read_choices(tandem::fs::read_file(path), kMachine).size(), 2u);

  constexpr const char* kOthers[] = {"plain", "vectors", "a new library"};
  Candidates others{{3e-3, 2e-3, 1e-3}};
  KernelTuner newer(others.options(folder.file("cache")));
  EXPECT_EQ(newer.choose(product(512), kOthers, 0, others.run()), 2);
}

TEST(KernelTuner, WorksWhereNothingCanBeWritten) {
  Candidates c{{3e-3, 1e-3, 2e-3}};
  testing::internal::CaptureStderr();
  KernelTuner tuner(c.options("/proc/no/such/folder"));
  EXPECT_EQ(tuner.choose(product(512), kNames, 0, c.run()), 1);
  EXPECT_EQ(tuner.choose(product(64), kNames, 0, c.run()), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(KernelTuner, MeasuresNothingWhereItIsOff) {
  const tandem::Folder folder;
  Candidates c{{3e-3, 1e-3, 2e-3}};
  KernelTuner::Options options = c.options(folder.file("cache"));
  options.enabled = false;
  KernelTuner tuner(options);
  EXPECT_EQ(tuner.choose(product(512), kNames, 2, c.run()), 2);
  EXPECT_EQ(c.runs, 0);
  EXPECT_THAT(tuner.describe(product(512), kNames, 2).reason, HasSubstr("TANDEM_TUNING=0"));
  EXPECT_FALSE(tandem::fs::exists(tandem::cpu::choices_path(folder.file("cache"), kMachine)));
}

TEST(KernelTuner, MeasuringEndsWhenItsTimeIsUsedUp) {
  Candidates c{{3.0, 1.0, 2.0}};
  KernelTuner::Options options = c.options();
  options.process_seconds = 1;
  KernelTuner tuner(options);
  EXPECT_EQ(tuner.choose(product(512), kNames, 0, c.run()), 1);
  EXPECT_EQ(c.runs, 6);  // once to warm up and once to measure: the class' time was up
  EXPECT_EQ(tuner.choose(product(1024), kNames, 0, c.run()), 0);
  EXPECT_EQ(c.runs, 6);
}

TEST(KernelTuner, ThreadsThatMeetAgree) {
  KernelTuner tuner({});
  std::atomic<int> runs{0};
  std::vector<int> chosen(8, -1);
  std::vector<std::thread> threads;
  for (int& choice : chosen) {
    threads.emplace_back([&] {
      choice = tuner.choose(product(512), kNames, 0, [&](int i) {
        runs += i == 0;
        return i != 0;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, 1);
  for (const int choice : chosen) EXPECT_EQ(choice, chosen[0]);
  EXPECT_GT(chosen[0], 0);
}

// A candidate that itself consists of a kernel with a choice.
TEST(KernelTuner, CandidatesMayChooseToo) {
  Candidates inner{{2e-3, 1e-3, 3e-3}};
  KernelTuner tuner(inner.options());
  const int outer = tuner.choose(product(512), kNames, 0, [&](int i) {
    if (i != 1) {
      inner.clock += 0.1;
      return true;
    }
    return inner.run()(tuner.choose(product(64), kNames, 0, inner.run()));
  });
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(tuner.known(product(64)), 1);
}

TEST(ChoiceFile, RefusesWhatIsNotWhole) {
  MeasuredChoices choices;
  choices[{"matmul float nn 64+ x 1 x 1 x 1", 4}] = {"vectors", {{"plain", -1}, {"vectors", 0.5}}};
  const std::string text = tandem::cpu::write_choices(choices, kMachine);
  const MeasuredChoices read = tandem::cpu::read_choices(text, kMachine);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read.begin()->first, choices.begin()->first);
  EXPECT_EQ(read.begin()->second.chosen, "vectors");
  EXPECT_EQ(read.begin()->second.times, choices.begin()->second.times);

  EXPECT_THROW(tandem::cpu::read_choices(text, "another machine"), tandem::InvalidArgumentError);
  for (std::size_t n = 0; n + 1 < text.size(); ++n)
    EXPECT_THROW(tandem::cpu::read_choices(text.substr(0, n), kMachine),
                 tandem::InvalidArgumentError)
        << n;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"choices 1", "choices 2"},
           {"0.5", "nan"},
           {"0.5", "much"},
           {"\t4\t", "\t\t"},
           {"vectors\tplain", "plain\tplain"},  // chosen although it could not run
           {"end\t1", "end\t2"},
           {"end\t1\n", "end\t1\nmore\n"}}) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    EXPECT_THROW(tandem::cpu::read_choices(other, kMachine), tandem::InvalidArgumentError) << to;
  }
}

TEST(ProblemClass, ClassesAreDistinct) {
  ProblemClass a = product(512);
  EXPECT_EQ(a.packed(), product(1023).packed());
  EXPECT_NE(a.packed(), product(1024).packed());
  for (ProblemClass b : {product(512, 1), product(511)}) EXPECT_NE(a.packed(), b.packed());
  ProblemClass b = a;
  b.layout = 1;
  EXPECT_NE(a.packed(), b.packed());
  b = a;
  b.dtype = tandem::DType::kHalf;
  EXPECT_NE(a.packed(), b.packed());
  b = a;
  b.problem = Problem::kConvForward;
  EXPECT_NE(a.packed(), b.packed());
  EXPECT_NE(a.packed(), 0u);
}

}  // namespace
