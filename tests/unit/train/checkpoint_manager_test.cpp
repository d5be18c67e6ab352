#include "tandem/train/checkpoint_manager.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/train/checkpoint_state.h"

#include "tests/unit/folder.h"

namespace tandem::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ManagerTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string saved(int number) const { return path("ckpt-" + std::to_string(number)); }
  CheckpointManager manager(CheckpointManagerOptions options = {}) {
    if (!options.clock) options.clock = [this] { return now_; };
    return CheckpointManager(Checkpoint({{"v", v_}}), path(""), options);
  }
  float value() const { return v_.read_value().item<float>(); }
  void save(const CheckpointManager& manager, float value) {
    v_.assign(Tensor(value));
    manager.save();
  }

  Folder folder_;
  Variable v_{Tensor(0.0f)};
  double now_ = 1e9;
};

// As tf.train.Checkpoint.restore(None): a first run restores nothing, and says so when asked.
TEST_F(ManagerTest, RestoringWhereNothingWasSavedChangesNothing) {
  const CheckpointManager m = manager();
  v_.assign(Tensor(5.0f));
  const LoadStatus status = m.checkpoint().restore(m.latest_checkpoint());
  EXPECT_EQ(value(), 5);
  status.expect_partial();
  for (const auto& check :
       {&LoadStatus::assert_consumed, &LoadStatus::assert_existing_objects_matched,
        &LoadStatus::assert_nontrivial_match}) {
    try {
      (status.*check)();
      ADD_FAILURE() << "no error";
    } catch (const FailedPreconditionError& e) {
      EXPECT_THAT(e.what(), HasSubstr("No checkpoint specified"));
    }
  }
  save(m, 7);
  v_.assign(Tensor(0.0f));
  m.checkpoint().restore(m.latest_checkpoint()).assert_consumed();
  EXPECT_EQ(value(), 7);
}

TEST_F(ManagerTest, KeepsTheLastOnes) {
  const CheckpointManager m = manager({.max_to_keep = 2});
  EXPECT_FALSE(m.latest_checkpoint());
  for (int i = 1; i <= 4; ++i) save(m, static_cast<float>(i));
  EXPECT_THAT(m.checkpoints(), ElementsAre(saved(3), saved(4)));
  EXPECT_FALSE(fs::exists(saved(2) + ".index"));
  EXPECT_FALSE(fs::exists(saved(2) + ".data-00000-of-00001"));
  EXPECT_EQ(fs::read_file(path("checkpoint")),
            "model_checkpoint_path: \"ckpt-4\"\n"
            "all_model_checkpoint_paths: \"ckpt-3\"\n"
            "all_model_checkpoint_paths: \"ckpt-4\"\n"
            "all_model_checkpoint_timestamps: 1000000000.0\n"
            "all_model_checkpoint_timestamps: 1000000000.0\n"
            "last_preserved_timestamp: 1000000000.0\n");
  v_.assign(Tensor(0.0f));
  const CheckpointManager next = manager({.max_to_keep = 2});
  EXPECT_EQ(next.restore_or_initialize(), saved(4));
  EXPECT_EQ(value(), 4);
  EXPECT_EQ(next.save(), saved(5));
  EXPECT_THAT(next.checkpoints(), ElementsAre(saved(4), saved(5)));
}

TEST_F(ManagerTest, KeepsOneForEachSpanOfHours) {
  const CheckpointManager m = manager({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2});
  for (int i = 1; i <= 6; ++i) {
    now_ += 3600;
    save(m, static_cast<float>(i));
  }
  // Two hours after the beginning, and two after that.
  std::vector<int> there;
  for (int i = 1; i <= 6; ++i)
    if (fs::exists(saved(i) + ".index")) there.push_back(i);
  EXPECT_THAT(there, ElementsAre(2, 4, 6));
  EXPECT_THAT(m.checkpoints(), ElementsAre(saved(6)));
}

TEST_F(ManagerTest, SavesAtIntervalsOfSteps) {
  const Variable step(Tensor(std::int64_t{0}));
  const CheckpointManager m = manager({.step_counter = step, .checkpoint_interval = 3});
  std::vector<int> at;
  for (int i = 0; i < 8; ++i, step.assign_add(Tensor(std::int64_t{1})))
    if (m.save()) at.push_back(i);
  EXPECT_THAT(at, ElementsAre(0, 3, 6));
  EXPECT_TRUE(m.save({.check_interval = false}));
  EXPECT_EQ(m.save({.checkpoint_number = 100, .check_interval = false}), saved(100));
  EXPECT_THROW(manager({.checkpoint_interval = 3}), InvalidArgumentError);
}

TEST_F(ManagerTest, InitialisesWhereThereIsNothing) {
  int calls = 0;
  EXPECT_FALSE(manager({.init_fn = [&] { ++calls; }}).restore_or_initialize());
  save(manager(), 1);
  EXPECT_TRUE(manager({.init_fn = [&] { ++calls; }}).restore_or_initialize());
  EXPECT_EQ(calls, 1);
}

TEST_F(ManagerTest, FallsBackToTheNewestGoodOne) {
  const CheckpointManager m = manager();
  for (int i = 1; i <= 3; ++i) save(m, static_cast<float>(i));
  std::ofstream(saved(3) + ".data-00000-of-00001") << "damaged";
  fs::file_system_of(saved(2)).remove(saved(2) + ".data-00000-of-00001");
  testing::internal::CaptureStderr();
  EXPECT_EQ(manager().restore_or_initialize(), saved(1));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("ckpt-3 cannot be restored"));
  EXPECT_THAT(log, HasSubstr("ckpt-2.data-00000-of-00001"));
  EXPECT_EQ(value(), 1);
  std::filesystem::resize_file(saved(1) + ".index", 10);
  EXPECT_THROW(manager().restore_or_initialize(), DataLossError);
}

TEST_F(ManagerTest, ADamagedListIsNotBelieved) {
  save(manager(), 1);
  save(manager(), 1);  // another number one
  const CheckpointManager m = manager();
  m.restore_or_initialize();
  save(m, 2);
  std::ofstream(path("checkpoint")) << "model_checkpoint_path: \"ckpt";
  EXPECT_THROW(get_checkpoint_state(path("")), DataLossError);
  testing::internal::CaptureStderr();
  EXPECT_EQ(manager().restore_or_initialize(), saved(2));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("in the order of their numbers"));
}

TEST_F(ManagerTest, ListsWhatIsWrittenInTheBackgroundWhenItIsThere) {
  const CheckpointManager m = manager({.max_to_keep = 1});
  for (int i = 1; i <= 3; ++i) m.save({.checkpoint = {.enable_async = true}});
  m.sync();
  EXPECT_THAT(m.checkpoints(), ElementsAre(saved(3)));
  EXPECT_EQ(latest_checkpoint(path("")), saved(3));
}

TEST(CheckpointStateFile, IsReadInAnyForm) {
  const CheckpointState state = parse_checkpoint_state(
      "# by hand\nmodel_checkpoint_path:'a\\\"\\x41\\101' 'b'\n all_model_checkpoint_paths : "
      "\"c\", "
      "last_preserved_timestamp: 1.5e3",
      "checkpoint");
  EXPECT_EQ(state.model_checkpoint_path, "a\"AAb");
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre("c"));
  EXPECT_EQ(state.last_preserved_timestamp, 1500);
  for (const char* text : {"x", "model_checkpoint_path", "model_checkpoint_path: 5", "a: \"b\"",
                           "model_checkpoint_path: \"x", "last_preserved_timestamp: y"}) {
    EXPECT_THROW(parse_checkpoint_state(text, "checkpoint"), DataLossError) << text;
  }
}

}  // namespace
}  // namespace tandem::train
