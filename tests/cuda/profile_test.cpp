// Profiles show what a device GPU:0 did itself, and when: by CUPTI, for which a stand-in is here.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/cuda/in_new_process.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<profiler::Event> of_hardware(const profiler::Profile& profile) {
  std::vector<profiler::Event> events;
  for (const profiler::Event& event : profile.events()) {
    if (event.kind == profiler::EventKind::kHardware) events.push_back(event);
  }
  return events;
}

std::vector<std::string> names_of(const std::vector<profiler::Event>& events) {
  std::vector<std::string> names;
  for (const profiler::Event& event : events) names.emplace_back(event.name);
  return names;
}

// A copy there, kernels, and a copy back.
float compute() {
  const DeviceScope on("/GPU:0");
  const Tensor x = fill({100000}, 2.0f);
  const Tensor there = [] {
    const DeviceScope host("/CPU:0");
    return fill({100000}, 3.0f);
  }();
  return reduce_sum(x * there).item<float>();
}

TEST(ProfileOfGpu, HasWhatTheGpuDid) {
  compute();
  profiler::start();
  EXPECT_EQ(compute(), 600000.0f);
  const profiler::Profile profile = profiler::stop();
  const std::vector<profiler::Event> events = of_hardware(profile);
  const std::vector<std::string> names = names_of(events);
  EXPECT_THAT(names, Contains("copy to the device"));
  EXPECT_THAT(names, Contains("copy to the host"));
  EXPECT_THAT(names, Contains(HasSubstr("fill")));
  EXPECT_THAT(names, Contains(HasSubstr("reduce")));
  for (const profiler::Event& event : events) {
    const profiler::Track& track = profile.tracks()[static_cast<std::size_t>(event.track)];
    EXPECT_THAT(track.process, EndsWith("/device:GPU:0"));
    EXPECT_THAT(track.name, StartsWith("hardware "));
    EXPECT_GE(event.begin, 0);
    EXPECT_GE(event.end, event.begin);
    EXPECT_LE(event.end, profile.seconds());
  }
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const profiler::Event& event) {
    return event.name == "copy to the device" && event.bytes == 4 * 100000;
  }));
  EXPECT_THAT(profile.to_json(), HasSubstr("\"cat\":\"hardware\""));
}

// A step that is one graph of the driver's has the kernels of the graph.
TEST(ProfileOfGpu, HasTheKernelsOfFunctions) {
  const auto f = function([](const Tensor& x) { return reduce_sum(exp(x)); });
  const DeviceScope on("/GPU:0");
  const auto call = [&] { return f(zeros({50})).item<float>(); };
  for (int i = 0; i < 6; ++i) call();
  profiler::start();
  EXPECT_EQ(call(), 50);
  const std::vector<std::string> names = names_of(of_hardware(profiler::stop()));
  EXPECT_THAT(names, Contains(HasSubstr("reduce")));
}

TEST(ProfileOfGpu, EndsWithTheRecording) {
  compute();
  profiler::start();
  compute();
  profiler::stop();
  compute();
  profiler::start();
  const profiler::Profile nothing = profiler::stop();
  EXPECT_THAT(of_hardware(nothing), IsEmpty());
}

// CUPTI does not know which thread gave a GPU its work.
TEST(ProfileOfGpu, HasNoPlaceInARecordingOfOneThread) {
  compute();
  profiler::Recording recording;
  compute();
  EXPECT_THAT(of_hardware(recording.stop()), IsEmpty());
}

TEST(ProfileOfGpu, IsThereWithoutPermissionToo) {
  in_new_process([] {
    setenv("CUPTI_STAND_IN_REFUSES", "1", 1);
    compute();
    profiler::start();
    EXPECT_EQ(compute(), 600000.0f);
    const profiler::Profile profile = profiler::stop();
    EXPECT_THAT(of_hardware(profile), IsEmpty());
    EXPECT_FALSE(profile.events().empty());
  });
}

TEST(ProfileOfGpu, IsThereWithoutCupti) {
  in_new_process([] {
    setenv("TANDEM_CUDA_LIBRARIES", "none", 1);
    compute();
    profiler::start();
    EXPECT_EQ(compute(), 600000.0f);
    const profiler::Profile profile = profiler::stop();
    EXPECT_THAT(of_hardware(profile), IsEmpty());
    EXPECT_FALSE(profile.events().empty());
  });
}

}  // namespace
}  // namespace tandem
