#include "tandem/placement/cost_model.h"

#include <cstdio>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/placement/cost_profile.h"

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CostModelTest, Roofline) {
  DeviceSet set = devices(1);
  set.devices[1].memory_bandwidth = 2;
  set.devices[1].launch_overhead = 10;
  const CostModel costs(set);
  WorkGraph g;
  Node* a = g.work("a", 100, {}, 4);
  Node* b = g.work("b", 4, {a}, 60);
  EXPECT_EQ(costs.seconds(*a, 0), 100);
  EXPECT_EQ(costs.seconds(*a, 1), 35);           // 100 / 4 operations
  EXPECT_EQ(costs.seconds(*b, 1), 10 + 64 / 2);  // bytes of input and output
  std::vector<double> all;
  costs.seconds_by_class(*b, all);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1], 42);
  EXPECT_FALSE(costs.measured(*a, 1));
}

TEST(CostModelTest, WhatTakesNoTime) {
  const CostModel costs(devices(1));
  WorkGraph g;
  Node* arg = g.arg("x", 4000);
  Node* view = g.same("view", arg);
  EXPECT_EQ(costs.seconds(*arg, 0), 0);
  EXPECT_EQ(costs.seconds(*g.variable("v", 400), 0), 0);
  EXPECT_EQ(CostModel::flops(*view), 0);
  EXPECT_EQ(CostModel::bytes(*view), 0);
  EXPECT_EQ(CostModel::output_bytes(*view, 0), 4000);
}

TEST(CostModelTest, EqualDevicesAreOfOneClass) {
  DeviceSet set = devices(3);
  set.devices[3].flops = 5;
  const CostModel costs(set);
  EXPECT_EQ(costs.num_classes(), 3);
  EXPECT_EQ(costs.class_of(1), costs.class_of(2));
  EXPECT_EQ(costs.representative(costs.class_of(3)), 3);
}

TEST(CostModelTest, MeasuredTimesComeBeforeTheModel) {
  WorkGraph g;
  Node* a = g.work("a", 100);
  Node* like_a = g.work("b", 100);
  Node* other = g.work("c", 100, {a});
  auto profile = std::make_shared<CostProfile>();
  profile->add(CostProfile::key(*a), "GPU", 9);
  const CostModel costs(devices(2), profile);
  EXPECT_EQ(costs.seconds(*a, 1), 9);
  EXPECT_EQ(costs.seconds(*like_a, 2), 9);
  EXPECT_EQ(costs.seconds(*a, 0), 100);
  EXPECT_EQ(costs.seconds(*other, 1), 25);
  EXPECT_TRUE(costs.measured(*a, 1));
  EXPECT_FALSE(costs.measured(*a, 0));
  std::vector<double> all;
  costs.seconds_by_class(*a, all);
  EXPECT_EQ(all[1], 9);
}

TEST(CostProfileTest, TheFirstTimeCountsOnlyAlone) {
  CostProfile profile;
  EXPECT_FALSE(profile.seconds("Add", "CPU"));
  profile.add("Add", "CPU", 9);
  EXPECT_EQ(profile.seconds("Add", "CPU"), 9);
  profile.add("Add", "CPU", 2);
  profile.add("Add", "CPU", 4);
  EXPECT_EQ(profile.seconds("Add", "CPU"), 3);
  EXPECT_FALSE(profile.seconds("Add", "GPU"));
  EXPECT_EQ(profile.size(), 1u);
}

std::string path(const char* name) { return ::testing::TempDir() + name; }

TEST(CostProfileTest, SavedAndLoaded) {
  WorkGraph g;
  CostProfile profile;
  profile.add(CostProfile::key(*g.work("a", 1)), "GPU", 0.1);
  profile.add("Add \xff\"", "CPU", 1e-7);  // no UTF-8
  profile.add("Add", "CPU", 3);
  profile.add("Add", "CPU", 0.25);
  const std::string file = path("profile.json"), again = path("profile_again.json");
  profile.save(file);
  const CostProfile loaded = CostProfile::load(file);
  EXPECT_EQ(loaded.size(), 3u);
  EXPECT_EQ(loaded.seconds("Add", "CPU"), 0.25);
  EXPECT_EQ(loaded.seconds(CostProfile::key(*g.work("b", 1)), "GPU"), 0.1);
  loaded.save(again);
  EXPECT_EQ(fs::read_file(file), fs::read_file(again));
  std::remove(file.c_str());
  std::remove(again.c_str());
}

TEST(CostProfileTest, MalformedIsRefusedByFileAndField) {
  const std::string file = path("bad_profile.json");
  const auto refusal = [&](const std::string& text) {
    fs::write_file(file, text);
    return refused([&] { CostProfile::load(file); });
  };
  const auto entry = [&](const std::string& fields) {
    return refusal(R"({"tandem_cost_profile": 1, "times": [{)" + fields + "}]}");
  };
  EXPECT_THAT(refusal("{\"tandem"),
              AllOf(HasSubstr(file + ": no cost profile: no JSON: parse error at line 1"),
                    Not(HasSubstr("exception"))));
  EXPECT_THAT(refusal("[]"),
              HasSubstr("no cost profile: a recording's costs().save(path) writes one"));
  EXPECT_THAT(refusal("{}"), HasSubstr("costs().save(path) writes one"));
  EXPECT_THAT(refusal(R"({"tandem_cost_profile": 7})"), HasSubstr("version 7"));
  EXPECT_THAT(refusal(R"({"tandem_cost_profile": 1, "times": 1})"), HasSubstr("'times'"));
  EXPECT_THAT(entry(R"("op": "A", "device": "CPU", "first": 1, "sum": 1)"),
              HasSubstr("times[0] has no field 'count'"));
  EXPECT_THAT(entry(R"("op": "A", "device": "CPU", "first": -1, "sum": 1, "count": 2)"),
              HasSubstr("times[0].first"));
  EXPECT_THAT(entry(R"("op": "A", "device": "CPU", "first": 1, "sum": "x", "count": 2)"),
              HasSubstr("times[0].sum"));
  EXPECT_THAT(entry(R"("op": 5, "device": "CPU", "first": 1, "sum": 1, "count": 2)"),
              HasSubstr("times[0].op"));
  EXPECT_THAT(entry(R"("op": "A", "device": "CPU", "first": 1, "sum": 1, "count": 0)"),
              HasSubstr("times[0].count"));
  std::remove(file.c_str());
  EXPECT_THROW(CostProfile::load(file), NotFoundError);
}

}  // namespace
}  // namespace tandem::schedule_test
