// Summaries: what lies in the event files that they write. The real TensorBoard reads such files in
// tests/tensorboard.

#include "tandem/io/summary.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/io/event_file.h"
#include "tandem/io/hparams.h"
#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::summary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<io::FileEvent> events_in(const std::string& path) {
  io::EventFileReader reader(path);
  std::vector<io::FileEvent> events;
  while (auto event = reader.next()) events.push_back(*std::move(event));
  EXPECT_FALSE(reader.cut_off());
  return events;
}

// Without the first one, which is the file's version.
std::vector<io::FileEvent> written(const SummaryWriter& writer) {
  writer.flush();
  std::vector<io::FileEvent> events = events_in(writer.path());
  EXPECT_EQ(events.at(0).file_version, "brain.Event:2");
  events.erase(events.begin());
  return events;
}

std::vector<std::int64_t> steps_of(const std::vector<io::FileEvent>& events) {
  std::vector<std::int64_t> steps;
  for (const auto& event : events) steps.push_back(event.step);
  return steps;
}

std::vector<std::string> tags_of(const std::vector<io::FileEvent>& events) {
  std::vector<std::string> tags;
  for (const auto& event : events)
    for (const auto& value : event.values) tags.push_back(value.tag);
  return tags;
}

class Summary : public testing::Test {
 protected:
  Folder folder_;
  SummaryWriter writer_ = create_file_writer(folder_.file("run"));
};

TEST_F(Summary, WritesScalars) {
  const auto on = writer_.as_default();
  EXPECT_TRUE(scalar("loss", 0.5, {.step = 3}));
  EXPECT_TRUE(scalar("count", 7, {.step = 4, .description = "how many"}));
  EXPECT_TRUE(scalar("mean", Tensor(1.5), {.step = Tensor(5)}));
  const auto events = written(writer_);
  EXPECT_THAT(steps_of(events), ElementsAre(3, 4, 5));
  EXPECT_THAT(tags_of(events), ElementsAre("loss", "count", "mean"));
  EXPECT_EQ(events[0].values[0].plugin, "scalars");
  EXPECT_EQ(events[0].values[0].value.item<float>(), 0.5f);
  EXPECT_EQ(events[1].values[0].value.item<float>(), 7.0f);
  EXPECT_EQ(events[1].values[0].description, "how many");
  EXPECT_EQ(events[2].values[0].value.item<float>(), 1.5f);
  EXPECT_NEAR(events[0].wall_time, events[2].wall_time, 60);
}

TEST_F(Summary, TakesTheStepByPosition) {
  const auto on = writer_.as_default();
  Variable counter(Tensor(std::int64_t{9}));
  EXPECT_TRUE(scalar("loss", 0.5, 3));
  EXPECT_TRUE(scalar("mean", Tensor(1.5), std::size_t{4}, "of all"));
  EXPECT_TRUE(scalar("at", 1.0f, Tensor(5)));
  EXPECT_TRUE(scalar("counted", 1, counter));
  const Tensor noise{0.25f, 0.5f, 0.75f};
  EXPECT_TRUE(histogram("noise", noise, 6, 2, "two buckets"));
  EXPECT_TRUE(image("picture", zeros({4, 2, 2, 1}), 7, 2));
  EXPECT_TRUE(audio("beep", zeros({1, 8, 1}), 8000, 8));
  EXPECT_TRUE(text("note", "words", 10, "in Markdown"));
  EXPECT_TRUE(write("raw", noise, 11, {.plugin_name = "mine"}));
  const auto events = written(writer_);
  EXPECT_THAT(steps_of(events), ElementsAre(3, 4, 5, 9, 6, 7, 8, 10, 11));
  EXPECT_EQ(events[1].values[0].description, "of all");
  EXPECT_EQ(events[4].values[0].value.shape(), Shape({2, 3}));
  EXPECT_EQ(events[5].values[0].value.shape(), Shape({4}));  // width, height, two images
  EXPECT_EQ(events[7].values[0].description, "in Markdown");
  EXPECT_EQ(events[8].values[0].plugin, "mine");
}

TEST_F(Summary, NamesItsFileAsTensorFlowDoes) {
  EXPECT_THAT(
      writer_.path(),
      testing::ContainsRegex("/run/events[.]out[.]tfevents[.][0-9]+[.].+[.][0-9]+[.][0-9]+[.]v2$"));
  const SummaryWriter other = create_file_writer(folder_.file("run"), {.filename_suffix = ".mine"});
  EXPECT_NE(other.path(), writer_.path());
  EXPECT_TRUE(other.path().ends_with(".mine"));
}

TEST_F(Summary, WithoutADefaultWriterWritesNothing) {
  EXPECT_FALSE(scalar("a", 1.0, {.step = 0}));
  {
    const auto on = writer_.as_default();
    EXPECT_TRUE(scalar("b", 1.0, {.step = 0}));
    const auto off = create_noop_writer().as_default();
    EXPECT_FALSE(scalar("c", 1.0, {.step = 0}));
    EXPECT_FALSE(should_record_summaries().item<bool>());
  }
  std::thread([&] { EXPECT_FALSE(scalar("d", 1.0, {.step = 0})); }).join();
  EXPECT_THAT(tags_of(written(writer_)), ElementsAre("b"));
}

TEST_F(Summary, TakesTheDefaultStep) {
  const auto on = writer_.as_default();
  EXPECT_THROW(scalar("a", 1.0), InvalidArgumentError);
  Variable step(Tensor(std::int64_t{10}));
  experimental::set_step(step);
  scalar("a", 1.0);
  step.assign_add(Tensor(std::int64_t{1}));
  scalar("a", 2.0);
  {
    const auto at = writer_.as_default(50);
    scalar("a", 3.0);
  }
  scalar("a", 4.0);
  EXPECT_THAT(steps_of(written(writer_)), ElementsAre(10, 11, 50, 11));
  experimental::set_step({});
}

TEST_F(Summary, NameScopesComeFirst) {
  const auto on = writer_.as_default(0);
  const NameScope outer("encoder");
  const NameScope inner("block");
  scalar("norm", 1.0);
  histogram("weights", Tensor{1.0, 2.0});
  write("as_it_is", Tensor(1));
  EXPECT_THAT(tags_of(written(writer_)),
              ElementsAre("encoder/block/norm", "encoder/block/weights", "as_it_is"));
}

TEST_F(Summary, RecordsOnlyIfAsked) {
  const auto on = writer_.as_default();
  for (int step = 0; step < 6; ++step) {
    const auto rarely = record_if(step % 3 == 0);
    scalar("bool", step, {.step = step});
  }
  int asked = 0;
  {
    const auto computed = record_if([&] { return Tensor(++asked == 2); });
    for (int step = 10; step < 13; ++step) EXPECT_EQ(scalar("f", 0, {.step = step}), step == 11);
    const auto inner = record_if(true);
    scalar("inner", 0, {.step = 20});
  }
  scalar("after", 0, {.step = 30});
  EXPECT_THAT(steps_of(written(writer_)), ElementsAre(0, 3, 11, 20, 30));
}

TEST_F(Summary, FunctionsWriteWhenTheyRun) {
  const auto on = writer_.as_default();
  Variable step(Tensor(std::int64_t{0}));
  auto f = function([&](const Tensor& x, const Tensor& wanted) {
    const auto if_wanted = record_if(wanted);
    scalar("sum", math::reduce_sum(x), {.step = step});
    scalar("constant", 2.0, {.step = step});
    histogram("x", x, {.step = step});
    return x * 2.0;
  });
  for (int i = 0; i < 3; ++i) {
    step.assign(Tensor(std::int64_t{i}));
    f(Tensor{1.0 * i, 2.0}, Tensor(i != 1));
  }
  EXPECT_EQ(f.num_traces(), 1);
  const auto events = written(writer_);
  EXPECT_THAT(steps_of(events), ElementsAre(0, 0, 0, 2, 2, 2));
  EXPECT_THAT(tags_of(events), ElementsAre("sum", "constant", "x", "sum", "constant", "x"));
  EXPECT_EQ(events[0].values[0].value.item<float>(), 2.0f);
  EXPECT_EQ(events[3].values[0].value.item<float>(), 4.0f);
}

TEST_F(Summary, FunctionsKeepTheWriterTheyWereTracedWith) {
  auto f = function([](const Tensor& x) {
    scalar("x", x, {.step = 1});
    return x;
  });
  {
    const auto on = writer_.as_default();
    f(Tensor(1.0));
  }
  const SummaryWriter other = create_file_writer(folder_.file("other"));
  const auto on = other.as_default();
  f(Tensor(2.0));
  EXPECT_THAT(written(writer_), SizeIs(2));
  EXPECT_THAT(written(other), SizeIs(0));
}

TEST_F(Summary, HistogramsHaveBucketsOfEqualWidth) {
  const auto on = writer_.as_default(0);
  histogram("h", Tensor{0.0, 1.0, 1.5, 4.0}, {.buckets = 4});
  histogram("one", Tensor{2, 2, 2}, {.buckets = 3});
  histogram("none", zeros({0}), {.buckets = 2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  histogram("nan", Tensor{nan, 1.0f, 3.0f}, {.buckets = 1});
  const auto events = written(writer_);
  const auto rows = [&](std::size_t i) {
    return events.at(i).values.at(0).value.to_vector<double>();
  };
  EXPECT_THAT(rows(0), ElementsAre(0, 1, 1, 1, 2, 2, 2, 3, 0, 3, 4, 1));
  EXPECT_THAT(rows(1), ElementsAre(2, 2, 0, 2, 2, 0, 2, 2, 3));
  EXPECT_THAT(rows(2), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(rows(3), ElementsAre(1, 3, 2));
}

TEST_F(Summary, ImagesArePngWithTheirSize) {
  const auto on = writer_.as_default(0);
  image("i", zeros({5, 2, 3, 1}), {.max_outputs = 2});
  const auto events = written(writer_);
  const auto values = events.at(0).values.at(0).value.to_vector<std::string>();
  ASSERT_THAT(values, SizeIs(4));
  EXPECT_EQ(values[0], "3");
  EXPECT_EQ(values[1], "2");
  EXPECT_EQ(image::decode_png(Tensor(values[3])).shape(), (Shape{2, 3, 1}));
  EXPECT_THROW(image("i", zeros({2, 3, 1})), InvalidArgumentError);
}

TEST_F(Summary, AudioIsWav) {
  const auto on = writer_.as_default(0);
  audio("a", ones({2, 10, 1}), 8000, {.max_outputs = 1});
  const auto events = written(writer_);
  const Tensor clips = events.at(0).values.at(0).value;
  EXPECT_EQ(clips.shape(), (Shape{1, 2}));
  const std::string wav = clips.at<std::string>({0, 0});
  EXPECT_TRUE(wav.starts_with("RIFF"));
  EXPECT_EQ(wav.size(), 44u + 2 * 10);
}

TEST_F(Summary, WhatWasFlushedSurvivesTheProcess) {
  const pid_t child = fork();
  if (child == 0) {
    // No destructor and no end of the program: flushed events alone are in the file.
    const SummaryWriter writer = create_file_writer(folder_.file("child"));
    const auto on = writer.as_default();
    for (int i = 0; i < 1000; ++i) scalar("a", i, {.step = i});
    writer.flush();
    scalar("a", -1, {.step = 5000});
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file("child"))) {
    const auto events = events_in(entry.path());
    ASSERT_GE(events.size(), 1001u);
    EXPECT_EQ(events[1000].step, 999);
  }
}

TEST_F(Summary, EventsReachTheFileWithoutAFlush) {
  const SummaryWriter writer = create_file_writer(folder_.file("soon"), {.flush_millis = 20});
  const auto on = writer.as_default();
  scalar("a", 1, {.step = 1});
  while (events_in(writer.path()).size() < 2) std::this_thread::yield();
  const SummaryWriter full =
      create_file_writer(folder_.file("full"), {.max_queue = 2, .flush_millis = 1'000'000});
  const auto on_full = full.as_default();
  for (int i = 0; i < 3; ++i) scalar("a", i, {.step = i});
  while (events_in(full.path()).size() < 4) std::this_thread::yield();
}

TEST_F(Summary, ThreadsShareAWriter) {
  constexpr int kThreads = 4, kEach = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto on = writer_.as_default();
      for (int i = 0; i < kEach; ++i) scalar("t" + std::to_string(t), i, {.step = i});
      writer_.flush();
    });
  }
  for (auto& thread : threads) thread.join();
  std::map<std::string, int> next;
  for (const auto& event : written(writer_)) EXPECT_EQ(event.step, next[event.values.at(0).tag]++);
  for (const auto& [tag, count] : next) EXPECT_EQ(count, kEach) << tag;
}

TEST_F(Summary, AClosedWriterRefuses) {
  const auto on = writer_.as_default();
  scalar("a", 1, {.step = 1});
  writer_.close();
  writer_.close();
  EXPECT_THAT(events_in(writer_.path()), SizeIs(2));
  EXPECT_THROW(scalar("a", 1, {.step = 1}), FailedPreconditionError);
  EXPECT_THROW(writer_.flush(), FailedPreconditionError);
}

TEST_F(Summary, RefusesWhatItCannotOpen) {
  EXPECT_THROW(create_file_writer("/dev/null/run"), Error);
  EXPECT_THROW(create_file_writer(folder_.file("x"), {.max_queue = -1}), InvalidArgumentError);
  EXPECT_THROW(create_file_writer(folder_.file("x"), {.flush_millis = 0}), InvalidArgumentError);
}

TEST_F(Summary, ACutFileEndsQuietly) {
  const auto on = writer_.as_default();
  for (int i = 0; i < 3; ++i) scalar("a", i, {.step = i});
  writer_.close();
  const std::string bytes = fs::read_file(writer_.path());
  io::EventFileReader reader(std::string_view(bytes).substr(0, bytes.size() - 5), "cut");
  int count = 0;
  while (reader.next()) ++count;
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(reader.cut_off());
}

TEST_F(Summary, HParamsCheckTheirValues) {
  const auto on = writer_.as_default();
  EXPECT_TRUE(hparams({{"lr", 0.1}, {"layers", 3}, {"bias", true}, {"optimizer", "adam"}}));
  EXPECT_TRUE(hparams_config(
      {.hparams = {{.name = "lr", .interval = {{0.0, 1.0}}}}, .metrics = {{.tag = "loss"}}}));
  EXPECT_THROW(hparams_config({.hparams = {{.name = "x", .values = {1, "a"}}}}),
               InvalidArgumentError);
  const auto events = written(writer_);
  EXPECT_THAT(tags_of(events), ElementsAre("_hparams_/session_start_info", "_hparams_/experiment"));
  EXPECT_EQ(events[0].values[0].plugin, "hparams");
}

TEST_F(Summary, TracesOfFunctionsAreExported) {
  const auto on = writer_.as_default();
  auto f = function([](const Tensor& x) { return math::tanh(matmul(x, x)); });
  EXPECT_THROW(trace_export("early", 0), FailedPreconditionError);
  trace_on({.profiler = true});
  f(ones({4, 4}));
  trace_export("trace", 0, folder_.file("run"));
  const auto events = written(writer_);
  EXPECT_EQ(events.at(0).values.at(0).plugin, "graph_run_metadata_graph");
  EXPECT_THAT(events[0].values[0].value.item<std::string>(), HasSubstr("MatMul"));
  EXPECT_TRUE(std::filesystem::exists(folder_.file("run/plugins/profile")));
  EXPECT_TRUE(graph(f.concrete(ones({4, 4}))));
  EXPECT_THAT(written(writer_).back().graph_def, HasSubstr("Tanh"));
}

}  // namespace
}  // namespace tandem::summary
