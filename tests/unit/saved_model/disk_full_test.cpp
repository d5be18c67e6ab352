// Files that cannot be written or read: the disk is full, or they are another user's. The error
// names the path, and what stood there before stays whole.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/io/event_file.h"
#include "tandem/io/npy.h"
#include "tandem/io/safetensors.h"
#include "tandem/io/summary.h"
#include "tandem/keras/serialization.h"
#include "tandem/saved_model/saved_model.h"
#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// No file of this process may have more bytes: the system's answer is that of a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    signal_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_{};
  void (*signal_)(int) = nullptr;
};

// The super-user may write everywhere, so tests that it runs become another user.
class Unprivileged {
 public:
  Unprivileged() { EXPECT_EQ(seteuid(super_ ? 65534 : geteuid()), 0); }
  ~Unprivileged() { EXPECT_EQ(seteuid(super_ ? 0 : geteuid()), 0); }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  const bool super_ = geteuid() == 0;
};

struct Format {
  const char* name;  // of what is there when all is written
  std::function<void(const std::string& path, float value)> write;
  std::function<float(const std::string& path)> read;  // the value that was written
};

keras::Sequential model_of(float value) {
  keras::Sequential model{
      keras::Input({200}),
      keras::Dense(
          200, {.use_bias = false, .kernel_initializer = keras::initializers::Constant(value)})};
  return model;
}
float value_of(const keras::Model& model) {
  return model.get_weights()[0].to_vector<float>().back();
}
Variable variable_of(float value) { return Variable(fill({200, 200}, value), {.name = "w"}); }

std::vector<Format> formats() {
  return {
      {"a.keras", [](const auto& path, float value) { model_of(value).save(path); },
       [](const auto& path) { return value_of(keras::models::load_model(path)); }},
      {"a.weights.h5", [](const auto& path, float value) { model_of(value).save_weights(path); },
       [](const auto& path) {
         const keras::Sequential model = model_of(0);
         model.load_weights(path);
         return value_of(model);
       }},
      {"a.safetensors",
       [](const auto& path, float value) {
         io::save_safetensors(path, {{"w", fill({200, 200}, value)}});
       },
       [](const auto& path) {
         return io::load_safetensors(path).at("w").template to_vector<float>().back();
       }},
      {"a.npz",
       [](const auto& path, float value) {
         io::save_npz(path, {{"w", fill({200, 200}, value)}});
       },
       [](const auto& path) {
         return io::load_npz(path).at("w").template to_vector<float>().back();
       }},
      {"a.index",
       [](const auto& path, float value) {
         train::Checkpoint({{"w", variable_of(value)}}).write(path.substr(0, path.size() - 6));
       },
       [](const auto& path) {
         const Variable w = variable_of(0);
         train::Checkpoint({{"w", w}}).restore(path.substr(0, path.size() - 6)).assert_consumed();
         return w.read_value().template to_vector<float>().back();
       }},
      {"a",
       [](const auto& path, float value) {
         saved_model::Module module;
         module.set("w", variable_of(value));
         saved_model::save(module, path);
       },
       [](const auto& path) {
         return saved_model::load(path)
             .variable("w")
             .read_value()
             .template to_vector<float>()
             .back();
       }},
  };
}

TEST(FullDisk, LeavesNothingHalfWrittenAndKeepsTheOld) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    const Folder folder;
    const std::string path = folder.file(format.name);
    const auto expect_full = [&] {
      try {
        const SmallFiles small(64 << 10);
        format.write(path, 2);
        ADD_FAILURE() << "it was written";
      } catch (const ResourceExhaustedError& error) {
        EXPECT_THAT(error.what(), HasSubstr(folder.file("a")));
      }
    };
    expect_full();
    EXPECT_EQ(folder.files(), 0u);
    format.write(path, 1);
    const std::size_t files = folder.files();
    expect_full();
    EXPECT_EQ(folder.files(), files);
    EXPECT_EQ(format.read(path), 1);
  }
}

TEST(AnotherUsersFolder, IsAnErrorThatNamesThePath) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    const Folder folder;
    const std::string path = folder.file(format.name);
    namespace files = std::filesystem;
    files::permissions(folder.file(""), files::perms::owner_read | files::perms::owner_exec |
                                            files::perms::others_read | files::perms::others_exec);
    try {
      const Unprivileged user;
      format.write(path, 1);
      ADD_FAILURE() << "it was written";
    } catch (const PermissionDeniedError& error) {
      EXPECT_THAT(error.what(), HasSubstr(folder.file("a")));
    }
    files::permissions(folder.file(""), files::perms::owner_all);
    EXPECT_EQ(folder.files(), 0u);
  }
}

TEST(AnotherUsersFile, IsAnErrorThatNamesThePath) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    const Folder folder;
    const std::string path = folder.file(format.name);
    format.write(path, 1);
    namespace files = std::filesystem;
    files::permissions(folder.file(""), files::perms::all);
    for (const auto& entry : files::recursive_directory_iterator(folder.file(""))) {
      if (entry.is_regular_file()) files::permissions(entry.path(), files::perms::none);
    }
    try {
      const Unprivileged user;
      format.read(path);
      ADD_FAILURE() << "it was read";
    } catch (const PermissionDeniedError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
    }
  }
}

// An event file grows as it is written, so what was flushed before the disk was full can be read.
TEST(FullDisk, KeepsTheEventsThatWereFlushed) {
  const Folder folder;
  const summary::SummaryWriter writer = summary::create_file_writer(folder.file("logs"));
  const auto as_default = writer.as_default();
  summary::scalar("loss", 0.5F, {.step = 1});
  writer.flush();
  const auto write_much = [&] {
    const SmallFiles small(64 << 10);
    for (int step = 2; step < 1000; ++step) {
      summary::text("log", std::string(1000, 'x'), {.step = step});
      writer.flush();
    }
  };
  try {
    write_much();
    ADD_FAILURE() << "it was written";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr(writer.path()));
  }
  EXPECT_THROW(summary::scalar("loss", 0.25F, {.step = 1000}), ResourceExhaustedError);
  io::EventFileReader events(writer.path());
  std::vector<std::int64_t> steps;
  while (const auto event = events.next()) {
    for (const io::EventValue& value : event->values) {
      if (value.tag == "loss") steps.push_back(event->step);
    }
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(1));
}

// A damaged file of more bytes than one group of reads changes no variable.
TEST(DamagedCheckpoint, ChangesNothingHoweverLarge) {
  const Folder folder;
  const auto variables = [](float value) {
    std::vector<Variable> all;
    for (int i = 0; i < 3; ++i) all.emplace_back(fill({16 << 20}, value));
    return all;
  };
  std::vector<Variable> saved = variables(1), restored = variables(0);
  train::Checkpoint({{"v", saved}}).write(folder.file("c"));
  const train::Checkpoint checkpoint({{"v", restored}});
  const std::string data = folder.file("c.data-00000-of-00001");
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(data));
  ASSERT_GT(size, 128 << 20);
  const auto flip_last_byte = [&] {
    std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(size - 1024);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(size - 1024);
    file.put(byte);
  };
  flip_last_byte();
  EXPECT_THROW(checkpoint.restore(folder.file("c")), DataLossError);
  for (const Variable& v : restored) EXPECT_EQ(reduce_max(v).item<float>(), 0);
  flip_last_byte();
  checkpoint.restore(folder.file("c")).assert_consumed();
  for (const Variable& v : restored) EXPECT_EQ(reduce_min(v).item<float>(), 1);
}

}  // namespace
}  // namespace tandem
