// A machine may stop at any time: whatever of a training's files survives, the last checkpoint that
// was saved is found whole, or the one that was being saved.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/fs/file_systems.h"
#include "tandem/train/checkpoint_manager.h"

#include "tests/unit/train/crash_file_system.h"

namespace tandem::train {
namespace {

// Half for the manager, half for checkpoints that replace one another.
int points() {
  const char* given = std::getenv("TANDEM_REPLAY_POINTS");
  return given ? std::atoi(given) : 10000;
}

// One file system for what is recorded, one for what was found after a crash.
RecordingFileSystem& file_system(const char* scheme) {
  static std::map<std::string, RecordingFileSystem*> made;
  RecordingFileSystem*& files = made[scheme];
  if (files == nullptr) {
    fs::register_file_system(scheme, [&files] {
      auto owned = std::make_unique<RecordingFileSystem>();
      files = owned.get();
      return owned;
    });
    fs::file_system_of(std::string(scheme) + "://run");
  }
  return *files;
}

// Several values, equal in a checkpoint that is whole.
struct Trained {
  std::vector<Variable> parts;
  Checkpoint checkpoint;

  Trained() {
    for (int i = 0; i < 4; ++i) parts.emplace_back(row(0));
    checkpoint = Checkpoint({{"parts", parts}});
  }
  static Tensor row(int step) {
    return Tensor(Array::vector<float>(std::vector<float>(64, static_cast<float>(step))));
  }
  void set(int step) {
    for (const Variable& part : parts) part.assign(row(step));
  }
  // The step that all values are of; -1 if they differ.
  int step() const {
    const float first = parts[0].read_value().to_vector<float>()[0];
    for (const Variable& part : parts)
      for (const float value : part.read_value().to_vector<float>())
        if (value != first) return -1;
    return static_cast<int>(first);
  }
};

// When each step was saved for good, in numbers of operations.
using Saved = std::vector<std::pair<std::size_t, int>>;

int last_saved(const Saved& saved, std::size_t count) {
  int step = 0;
  for (const auto& [operations, number] : saved)
    if (operations <= count) step = number;
  return step;
}

CrashedFiles moved(const CrashedFiles& files) {
  CrashedFiles result;
  for (const auto& [path, bytes] : files) result["crashed" + path.substr(path.find("://"))] = bytes;
  return result;
}

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    level_ = log_level();
    set_log_level(LogLevel::kNone);
  }
  void TearDown() override { set_log_level(level_); }
  LogLevel level_{};
};

constexpr int kSteps = 12;

TEST_F(Replay, TheManagersLastCheckpointIsWhole) {
  RecordingFileSystem& record = file_system("record");
  RecordingFileSystem& crashed = file_system("crashed");
  record.reset({});
  Saved saved;
  {
    Trained trained;
    const CheckpointManager manager(trained.checkpoint, "record://run", {.max_to_keep = 2});
    for (int step = 1; step <= kSteps; ++step) {
      trained.set(step);
      SaveOptions how;
      how.checkpoint.enable_async = step % 3 == 0;
      how.checkpoint.max_shard_size = step % 4 == 0 ? 300 : 0;
      manager.save(how);
      manager.sync();
      saved.emplace_back(record.operations(), step);
    }
  }
  const FileLog log = record.log();
  std::mt19937 random(1);
  for (int i = 0; i < points() / 2; ++i) {
    const std::size_t count = random() % (log.operations.size() + 1);
    crashed.reset(moved(crash(log, count, random)));
    Trained found;
    const CheckpointManager manager(found.checkpoint, "crashed://run");
    try {
      manager.restore_or_initialize();
    } catch (const Error& error) {
      FAIL() << "after " << count << " operations: " << error.what();
    }
    const int expected = last_saved(saved, count);
    ASSERT_TRUE(found.step() == expected || found.step() == expected + 1)
        << "after " << count << " operations: " << found.step() << ", not " << expected;
  }
}

TEST_F(Replay, ACheckpointThatIsReplacedIsWholeOrTheNewOneIs) {
  RecordingFileSystem& record = file_system("record");
  RecordingFileSystem& crashed = file_system("crashed");
  record.reset({});
  Saved saved;
  {
    Trained trained;
    for (int step = 1; step <= kSteps; ++step) {
      trained.set(step);
      trained.checkpoint.write("record://run/best", {.max_shard_size = step % 5 == 0 ? 300 : 0});
      saved.emplace_back(record.operations(), step);
    }
  }
  const FileLog log = record.log();
  std::mt19937 random(2);
  for (int i = 0; i < points() / 2; ++i) {
    const std::size_t count = random() % (log.operations.size() + 1);
    crashed.reset(moved(crash(log, count, random)));
    Trained found;
    const int expected = last_saved(saved, count);
    try {
      found.checkpoint.restore("crashed://run/best");
    } catch (const NotFoundError&) {
      ASSERT_EQ(expected, 0) << "after " << count << " operations";
      continue;
    } catch (const Error& error) {
      FAIL() << "after " << count << " operations: " << error.what();
    }
    ASSERT_TRUE(found.step() == expected || found.step() == expected + 1)
        << "after " << count << " operations: " << found.step() << ", not " << expected;
  }
}

// The test itself: without syncs a crash does lose checkpoints.
TEST_F(Replay, FindsWhatAWriterWithoutSyncsLoses) {
  RecordingFileSystem& record = file_system("record");
  RecordingFileSystem& crashed = file_system("crashed");
  record.reset({});
  Trained trained;
  const CheckpointManager manager(trained.checkpoint, "record://run", {.max_to_keep = 1});
  for (int step = 1; step <= 3; ++step) {
    trained.set(step);
    manager.save();
  }
  FileLog log = record.log();
  std::erase_if(log.operations, [](const FileLog::Operation& o) {
    return o.kind == FileLog::Kind::kSync || o.kind == FileLog::Kind::kSyncDirectory;
  });
  std::mt19937 random(3);
  int lost = 0;
  for (int i = 0; i < 200; ++i) {
    crashed.reset(moved(crash(log, log.operations.size(), random)));
    Trained found;
    try {
      CheckpointManager(found.checkpoint, "crashed://run").restore_or_initialize();
      lost += found.step() != 3;
    } catch (const Error&) {
      ++lost;
    }
  }
  EXPECT_GT(lost, 100);
}

}  // namespace
}  // namespace tandem::train
