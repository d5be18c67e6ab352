// SavedModels in stores, where a folder is not renamed in one step.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/file_systems.h"
#include "tandem/ops/ops.h"
#include "tandem/saved_model/saved_model.h"

namespace tandem::saved_model {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Files of ram://, of which no folder can be renamed. Notes the names that appear.
class Store final : public fs::FileSystem {
 public:
  static inline std::vector<std::string> names;
  static inline bool full = false;

  std::unique_ptr<fs::ReadableFile> open(const std::string& path) override {
    return ram().open(within(path));
  }
  std::unique_ptr<fs::WritableFile> create(const std::string& path) override {
    if (full && path.find("fingerprint") != std::string::npos)
      throw ResourceExhaustedError(path + "; the store is full");
    return ram().create(within(path));
  }
  fs::FileInfo stat(const std::string& path) override { return ram().stat(within(path)); }
  std::vector<std::string> list(const std::string& path) override {
    return ram().list(within(path));
  }
  void remove(const std::string& path) override { ram().remove(within(path)); }
  void rename(const std::string& from, const std::string& to) override {
    if (stat(from).is_directory) throw UnimplementedError(from + "; a folder is no object");
    ram().rename(within(from), within(to));
    names.push_back(to);
  }
  bool has_directories() const override { return false; }
  void make_directories(const std::string& path) override { ram().make_directories(within(path)); }

 private:
  static std::string within(const std::string& path) { return "ram://" + path.substr(8); }
  static fs::FileSystem& ram() { return fs::file_system_of("ram://x"); }
};

TEST(SavedModelInAStore, IsCommittedByItsLastObject) {
  fs::register_file_system("store", [] { return std::make_unique<Store>(); });
  const std::string folder = "store://models/m";
  const Variable w(Tensor{1.0, 2.0}, {.name = "w"});
  Module model;
  model.set("w", w);
  const auto value = [&] { return load(folder).variable("w").read_value().to_vector<float>(); };

  Store::full = true;
  EXPECT_THROW(save(model, folder), ResourceExhaustedError);
  EXPECT_FALSE(fs::exists(folder + "/saved_model.pb"));
  Store::full = false;
  save(model, folder);
  EXPECT_EQ(Store::names.back(), folder + "/saved_model.pb");
  EXPECT_EQ(value(), (std::vector<float>{1, 2}));

  // One that was interrupted is written over, and so is a whole one.
  fs::file_system_of(folder).remove(folder + "/saved_model.pb");
  EXPECT_THROW(load(folder), NotFoundError);
  for (const float x : {3.0f, 4.0f}) {
    w.assign(Tensor{x, x});
    save(model, folder);
    EXPECT_EQ(value(), (std::vector<float>{x, x}));
  }
  fs::write_file("store://models/other/notes", "mine");
  EXPECT_THROW(save(model, "store://models/other"), AlreadyExistsError);
}

}  // namespace
}  // namespace tandem::saved_model
