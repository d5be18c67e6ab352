#include "tandem/device/conformance/conformance.h"

#include <iostream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/device/emulated/emulated_backend.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/device/host/host_backend.h"
#include "tandem/device/null/null_backend.h"

namespace tandem {
namespace {

// One line a backend. Cases that it can't pass are listed with the reason; an entry that has begun
// to pass fails the test until it is removed.
struct Subject {
  const char* name;
  std::unique_ptr<Backend> (*make)();
  ConformanceOptions options;
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

std::unique_ptr<Backend> host() { return std::make_unique<HostBackend>(); }

ConformanceOptions host_options() {
  ConformanceOptions options;
  const char* const no_limits = "the host's memory has no limits, as in TensorFlow";
  const char* const synchronous = "work runs on the calling thread, within enqueue";
  options.cannot = {
      {"limits/*", no_limits},
      {"allocation/comes_back", no_limits},
      {"allocation/coalesces", no_limits},
      {"copies/between_physical", "there is one CPU"},
      {"streams/independent", synchronous},
      {"streams/enqueue_does_not_block", synchronous},
      {"events/not_before", synchronous},
      {"events/wait_for_does_not_block", synchronous},
      {"events/waits_for_foreign_event", synchronous},
      {"lifetime/pending_work", synchronous},
      {"failure/*", "the CPU is never lost"},
  };
  return options;
}

std::unique_ptr<Backend> emulated() {
  return std::make_unique<EmulatedBackend>(
      EmulatedSpec::parse("GPU:2,memory=32MiB,link=10GB/s,latency=1us,streams=2"));
}

ConformanceOptions emulated_options() {
  ConformanceOptions options;
  options.lose = [](Device& device) {
    dynamic_cast<EmulatedDevice&>(device).lose("the test unplugged it");
  };
  return options;
}

std::unique_ptr<Backend> null() {
  NullSpec spec{.type = "GPU", .count = 2};
  spec.properties.memory_bytes = std::size_t{32} << 20;
  return std::make_unique<NullBackend>(std::vector<NullSpec>{spec});
}

ConformanceOptions null_options() {
  ConformanceOptions options;
  const char* const synchronous = "work is over when enqueue returns";
  options.cannot = {
      {"streams/independent", synchronous},
      {"streams/enqueue_does_not_block", synchronous},
      {"events/not_before", synchronous},
      {"events/wait_for_does_not_block", synchronous},
      {"events/waits_for_foreign_event", synchronous},
      {"lifetime/pending_work", synchronous},
      {"failure/*", "there is nothing to lose"},
  };
  return options;
}

class Conformance : public testing::TestWithParam<Subject> {};

TEST_P(Conformance, PassesTheSuite) {
  const auto backend = GetParam().make();
  ConformanceOptions options = GetParam().options;
  // Where a case hangs, the last line names it.
  options.begin = [](std::string_view name) { std::cout << name << std::endl; };
  const auto results = run_conformance(*backend, options);
  EXPECT_GT(results.size(), 40u);
  EXPECT_TRUE(all_passed(results)) << describe(results);
}

INSTANTIATE_TEST_SUITE_P(Backends, Conformance,
                         testing::Values(Subject{"host", host, host_options()},
                                         Subject{"emulated", emulated, emulated_options()},
                                         Subject{"null", null, null_options()}),
                         [](const auto& subject) { return std::string(subject.param.name); });

// The suite itself: what it says of a backend that does not keep to its list.
TEST(ConformanceSuite, AListedCaseThatPassesFails) {
  HostBackend backend;
  ConformanceOptions options = host_options();
  options.only = "copies/offsets";
  options.cannot = {{"copies/offsets", "a made-up reason"}};
  const auto results = run_conformance(backend, options);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(all_passed(results));
  EXPECT_NE(results[0].text.find("a made-up reason"), std::string::npos);
}

TEST(ConformanceSuite, AListedCaseThatIsNoneFails) {
  HostBackend backend;
  ConformanceOptions options;
  options.only = "copies/offsets";
  options.cannot = {{"copies/ofsets", "misspelled"}};
  const auto results = run_conformance(backend, options);
  EXPECT_FALSE(all_passed(results));
  EXPECT_NE(describe(results).find("copies/ofsets: is listed, but there is no such case"),
            std::string::npos);
}

TEST(ConformanceSuite, ReportsWhatFailed) {
  HostBackend backend;
  ConformanceOptions options;
  options.only = "streams/independent";
  const auto results = run_conformance(backend, options);
  EXPECT_FALSE(all_passed(results));
  EXPECT_EQ(describe(results),
            "streams/independent: the device is synchronous: work runs within enqueue\n"
            "0 passed, 1 failed, 0 cannot\n");
}

}  // namespace
}  // namespace tandem
